"""Collations of MariaDB and MySQL that give each character one weight of its own: which characters are one to them.

Such a collation takes two texts for equal when they are equal character by character, but for spaces at the end. So a
table of characters is all of it, and a host without a driver can compute it. A character that is not in the table is
equal to itself alone. Collations of the Unicode Collation Algorithm (``utf8mb4_unicode_ci``, ``utf8mb4_uca1400_ai_ci``,
``utf8mb4_0900_ai_ci``) take one character for several, and several for none; they are not here.

The tables were read from a server (``WEIGHT_STRING``), and a test compares them with one, character by character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_GENERAL: Final = """
AaÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎǞǟǠǡǺǻȀȁȂȃȦȧḀḁẠạẢảẤấẦầẨẩẪẫẬậẮắẰằẲẳẴẵẶặ BbḂḃḄḅḆḇ CcÇçĆćĈĉĊċČčḈḉ DdĎďḊḋḌḍḎḏḐḑḒḓ
EeÈÉÊËèéêëĒēĔĕĖėĘęĚěȄȅȆȇȨȩḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệ FfḞḟ GgĜĝĞğĠġĢģǦǧǴǵḠḡ HhĤĥȞȟḢḣḤḥḦḧḨḩḪḫẖ
IiÌÍÎÏìíîïĨĩĪīĬĭĮįİıǏǐȈȉȊȋḬḭḮḯỈỉỊị JjĴĵǰ KkĶķǨǩḰḱḲḳḴḵ LlĹĺĻļĽľḶḷḸḹḺḻḼḽ MmḾḿṀṁṂṃ NnÑñŃńŅņŇňǸǹṄṅṆṇṈṉṊṋ
OoÒÓÔÕÖòóôõöŌōŎŏŐőƠơǑǒǪǫǬǭȌȍȎȏȪȫȬȭȮȯȰȱṌṍṎṏṐṑṒṓỌọỎỏỐốỒồỔổỖỗỘộỚớỜờỞởỠỡỢợ PpṔṕṖṗ Qq RrŔŕŖŗŘřȐȑȒȓṘṙṚṛṜṝṞṟ
SsßŚśŜŝŞşŠšſȘșṠṡṢṣṤṥṦṧṨṩẛ TtŢţŤťȚțṪṫṬṭṮṯṰṱẗ
UuÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưǓǔǕǖǗǘǙǚǛǜȔȕȖȗṲṳṴṵṶṷṸṹṺṻỤụỦủỨứỪừỬửỮữỰự VvṼṽṾṿ WwŴŵẀẁẂẃẄẅẆẇẈẉẘ XxẊẋẌẍ
YyÝýÿŶŷŸȲȳẎẏẙỲỳỴỵỶỷỸỹ ZzŹźŻżŽžẐẑẒẓẔẕ ÆæǢǣǼǽ Ðð ØøǾǿ Þþ Đđ Ħħ Ĳĳ Ŀŀ Łł Ŋŋ Œœ Ŧŧ Ɓɓ Ƃƃ Ƅƅ Ɔɔ
Ƈƈ Ɖɖ Ɗɗ Ƌƌ Ǝǝ Əə Ɛɛ Ƒƒ Ɠɠ Ɣɣ Ɩɩ Ɨɨ Ƙƙ Ɯɯ Ɲɲ Ɵɵ Ƣƣ Ƥƥ Ʀʀ Ƨƨ Ʃʃ Ƭƭ Ʈʈ Ʊʊ Ʋʋ Ƴƴ Ƶƶ ƷǮǯʒ Ƹƹ Ƽƽ Ǆǅǆ Ǉǈǉ Ǌǋǌ Ǥǥ Ǳǲǳ Ƕƕ
Ƿƿ Ȝȝ Ȣȣ Ȥȥ ΑΆάαἀἁἂἃἄἅἆἇἈἉἊἋἌἍἎἏὰᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾰᾱᾲᾳᾴᾶᾷᾸᾹᾺᾼ Ββϐ Γγ Δδ ΕΈέεἐἑἒἓἔἕἘἙἚἛἜἝὲῈ Ζζ
ΗΉήηἠἡἢἣἤἥἦἧἨἩἪἫἬἭἮἯὴᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟῂῃῄῆῇῊῌ Θθϑ Ι\u0345ΊΐΪίιϊἰἱἲἳἴἵἶἷἸἹἺἻἼἽἾἿὶιῐῑῒῖῗῘῙῚ Κκϰ Λλ Μµμ
Νν Ξξ ΟΌοόὀὁὂὃὄὅὈὉὊὋὌὍὸῸ Ππϖ ΡρϱῤῥῬ Σςσϲ Ττ ΥΎΫΰυϋύὐὑὒὓὔὕὖὗὙὛὝὟὺῠῡῢῦῧῨῩῪ Φφϕ Χχ Ψψ
ΩΏωώὠὡὢὣὤὥὦὧὨὩὪὫὬὭὮὯὼᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯῲῳῴῶῷῺῼ ϒϓϔ Ϛϛ Ϝϝ Ϟϟ Ϡϡ Ϣϣ Ϥϥ Ϧϧ Ϩϩ Ϫϫ Ϭϭ Ϯϯ Ђђ Єє Ѕѕ ІЇії Јј Љљ Њњ Ћћ Џџ
АаӐӑӒӓ Бб Вв ГЃгѓ Дд ЕЀЁеѐёӖӗ ЖжӁӂӜӝ ЗзӞӟ ИЍиѝӢӣӤӥ Йй КЌкќ Лл Мм Нн ОоӦӧ Пп
Рр Сс Тт УЎуўӮӯӰӱӲӳ Фф Хх Цц ЧчӴӵ Шш Щщ Ъъ ЫыӸӹ Ьь ЭэӬӭ Юю Яя Ѡѡ Ѣѣ Ѥѥ Ѧѧ Ѩѩ Ѫѫ
Ѭѭ Ѯѯ Ѱѱ Ѳѳ ѴѵѶѷ Ѹѹ Ѻѻ Ѽѽ Ѿѿ Ҁҁ Ҍҍ Ҏҏ Ґґ Ғғ Ҕҕ Җҗ Ҙҙ Ққ Ҝҝ Ҟҟ Ҡҡ Ңң Ҥҥ Ҧҧ Ҩҩ Ҫҫ Ҭҭ Үү Ұұ Ҳҳ Ҵҵ Ҷҷ Ҹҹ Һһ Ҽҽ Ҿҿ Ӄӄ
Ӈӈ Ӌӌ Ӕӕ ӘәӚӛ Ӡӡ ӨөӪӫ Աա Բբ Գգ Դդ Եե Զզ Էէ Ըը Թթ Ժժ Իի Լլ Խխ Ծծ Կկ Հհ Ձձ Ղղ Ճճ Մմ Յյ Նն Շշ Ոո Չչ Պպ Ջջ Ռռ Սս Վվ
Տտ Րր Ցց Ււ Փփ Քք Օօ Ֆֆ Άά Έέ Ήή Ίί Ύύ Όό Ώώ \u2160\u2170 \u2161\u2171 \u2162\u2172 \u2163\u2173 \u2164\u2174
\u2165\u2175 \u2166\u2176 \u2167\u2177 \u2168\u2178 \u2169\u2179 \u216a\u217a \u216b\u217b \u216c\u217c
\u216d\u217d \u216e\u217e \u216f\u217f \u24b6\u24d0 \u24b7\u24d1 \u24b8\u24d2 \u24b9\u24d3 \u24ba\u24d4
\u24bb\u24d5 \u24bc\u24d6 \u24bd\u24d7 \u24be\u24d8 \u24bf\u24d9 \u24c0\u24da \u24c1\u24db \u24c2\u24dc
\u24c3\u24dd \u24c4\u24de \u24c5\u24df \u24c6\u24e0 \u24c7\u24e1 \u24c8\u24e2 \u24c9\u24e3 \u24ca\u24e4
\u24cb\u24e5 \u24cc\u24e6 \u24cd\u24e7 \u24ce\u24e8 \u24cf\u24e9 Ａａ Ｂｂ Ｃｃ Ｄｄ Ｅｅ Ｆｆ Ｇｇ Ｈｈ Ｉｉ
Ｊｊ Ｋｋ Ｌｌ Ｍｍ Ｎｎ Ｏｏ Ｐｐ Ｑｑ Ｒｒ Ｓｓ Ｔｔ Ｕｕ Ｖｖ Ｗｗ Ｘｘ Ｙｙ Ｚｚ
"""
"""``utf8mb4_general_ci`` and ``utf8mb3_general_ci``: words of characters that are one; the first one stands for all."""

_SWEDISH: Final = """
AaÀÁÂÃàáâã Bb CcÇç DdÐð EeÈÉÊËèéêë Ff Gg Hh IiÌÍÎÏìíîï Jj Kk Ll Mm NnÑñ OoÒÓÔÕòóôõ Pp Qq Rr Ss Tt UuÙÚÛùúû Vv Ww Xx
YyÜÝüý Zz [Åå \\ÄÆäæ ]Öö Øø Þþ
"""
"""``latin1_swedish_ci``, likewise."""

_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")


def general_ci(text: str) -> str:
    """Returns a text in which characters are alike that ``utf8mb4_general_ci`` takes for one."""
    return text.upper() if text.isascii() else _BEYOND.sub("\ufffd", text.translate(_GENERAL_TABLE))


def swedish_ci(text: str) -> str:
    """Returns a text in which characters are alike that ``latin1_swedish_ci`` takes for one."""
    return text.upper() if text.isascii() else text.translate(_SWEDISH_TABLE)


def _table(words: str) -> Mapping[int, str]:
    return {ord(each): word[0] for word in words.split() for each in word[1:]}


_GENERAL_TABLE: Final = _table(_GENERAL)
_SWEDISH_TABLE: Final = _table(_SWEDISH)
