"""Who may reach the console: what the settings refuse, and what is shown of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.settings import RowDisplay, Settings, load

OIDC = {
    "OidcIssuer": "https://login.example/realm",
    "OidcClientId": "kainite",
    "OidcRedirect": "https://kainite.example/oidc/callback",
}


def loaded(folder: Path, **settings: str) -> Settings:
    path = folder / "app.properties"
    path.write_text(
        "applicationName = app\n" + "".join(f"console{name} = {value}\n" for name, value in settings.items())
    )
    return load(path, needs=("applicationName",))


@pytest.mark.parametrize(
    "settings",
    [
        {"Listen": "0.0.0.0:1"},
        {"Listen": "10.0.0.1:1", "UsersFile": "u"},
        {"Listen": "10.0.0.1:1", "CertificateFile": "c", "KeyFile": "k"},
        {"Listen": "10.0.0.1:1", "Proxies": "10.0.0.2"},
        {"Proxies": "10.0.0.2"},
        {"UserHeader": "X-User"},
        {"Proxies": "my-proxy", "UserHeader": "X-User"},
        {"CertificateFile": "c"},
        {"Listen": "kainite.example:1", "UsersFile": "u"},
        {"OidcIssuer": "https://login.example"},
        {"OidcClientId": "kainite"},
        {"OidcRedirect": "https://kainite.example/oidc/callback"},
        {**OIDC, "OidcIssuer": "http://login.example"},
        {**OIDC, "OidcRedirect": "http://kainite.example/oidc/callback"},
        {**OIDC, "UsersFile": "u"},
        {"OidcGroups": "support", "UsersFile": "u"},
        {**OIDC, "UserHeader": "X-User", "Proxies": "127.0.0.1"},
        {**OIDC, "Listen": "10.0.0.1:1"},
    ],
)
def test_what_would_open_it_to_everybody_is_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="console"):
        loaded(tmp_path, **settings)


@pytest.mark.parametrize(
    ("settings", "display"),
    [
        ({}, RowDisplay.FULL),
        ({"Listen": "[::1]:0", "UsersFile": "u"}, RowDisplay.FULL),
        ({"Listen": "10.0.0.1:1", "UsersFile": "u", "CertificateFile": "c", "KeyFile": "k"}, RowDisplay.MASKED),
        ({"Proxies": "127.0.0.1", "UserHeader": "X-User"}, RowDisplay.MASKED),
        ({"Listen": "0.0.0.0:1", "Proxies": "10.0.0.0/28", "UsersFile": "u"}, RowDisplay.MASKED),
        ({"Proxies": "127.0.0.1", "UserHeader": "X-User", "Values": "full"}, RowDisplay.FULL),
        ({"Values": "none"}, RowDisplay.NONE),
        (OIDC, RowDisplay.FULL),
        ({**OIDC, "OidcIssuer": "http://127.0.0.1:1/realm"}, RowDisplay.FULL),
        ({**OIDC, "Listen": "0.0.0.0:1", "Proxies": "10.0.0.0/28"}, RowDisplay.MASKED),
        ({**OIDC, "Listen": "0.0.0.0:1", "CertificateFile": "c", "KeyFile": "k"}, RowDisplay.MASKED),
    ],
)
def test_rows_are_masked_beyond_loopback(tmp_path: Path, settings: dict[str, str], display: RowDisplay) -> None:
    assert loaded(tmp_path, **settings).console.shown_values is display
