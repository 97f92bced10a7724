/* A record processor in C, without a library: JSON records in, deltas out, one at a time.
 *
 * Build:  cc -O2 -o markers markers.c
 * Run:    executableName = ./markers
 *         childProtocol = markers
 * It takes the default markers: a message ends with a line end, an answer with NUL. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UOW, TABLE, ID, END, COUNT, OTHER };
static const char *NAMES[] = {"\"uow\"", "\"table\"", "\"id\"", "\"end\"", "\"count\""};
static char *skip(char *p) { return p + strspn(p, " \t\r\n"); }

/* Behind the JSON value at p. It looks at brackets and quotes only; your own processor would use a library. */
static char *behind(char *p) {
    int depth = 0;
    if (!strchr("\"{[", *p)) return p + strspn(p, "+-.0123456789Etruefalsn");
    for (; *p; p++) {
        if (*p == '"')
            while (*++p != '"')
                if ((unsigned char)*p < ' ' || (*p == '\\' && !*++p)) return p;
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        if (depth == 0) return p + 1;
    }
    return p;
}

/* Writes the delta that a record stands for, or the end of a unit of work as it is; gives back what is wrong. */
static const char *answer(char *record, char *row) {
    char *p = skip(record), *value[OTHER] = {0}, *to = row;
    int length[OTHER], i;
    if (*p != '{' || mbstowcs(NULL, record, 0) == (size_t)-1) return "not a JSON object";
    do {
        char *name = skip(p + 1), *colon = skip(behind(name)), *start = skip(colon + !!*colon), *end = behind(start);
        if (*name != '"' || *colon != ':' || end == start) return "not a JSON object";
        for (i = UOW; i < OTHER && strncmp(name, NAMES[i], strlen(NAMES[i])) != 0; i++) {}
        if (i < OTHER) value[i] = start, length[i] = (int)(end - start);
        if (i > TABLE) to += sprintf(to, "%s%.*s", to == row ? "" : ",", (int)(end - name), name);
        p = skip(end);
    } while (*p == ',');
    if (*p != '}' || *skip(p + 1)) return "not a JSON object";
    if (value[UOW] && value[COUNT] && value[END] && *value[END] == 't') return printf("%s\n", record), NULL;
    if (!value[UOW] || !value[TABLE] || !value[ID]) return "a record has uow, table and id, or uow, end and count";
    printf("{\"uow\":%.*s,\"table\":%.*s,\"op\":\"upsert\"", length[UOW], value[UOW], length[TABLE], value[TABLE]);
    return printf(",\"key\":{\"id\":%.*s},\"row\":{%s}}\n", length[ID], value[ID], row), NULL;
}

int main(void) {
    char *line = NULL, *row = NULL;
    size_t room = 0;
    setlocale(LC_CTYPE, "C.UTF-8");
    for (ssize_t size; (size = getline(&line, &room, stdin)) > 0 && (row = realloc(row, room)); fflush(stdout)) {
        if (line[size - 1] == '\n') line[size - 1] = '\0';
        const char *wrong = answer(line, row);
        if (wrong) printf("{\"bad\":\"%s\"}\n", wrong);
        putchar('\0');
    }
}
