#include "engine/build/diagnose.h"

#include "engine/build/scan.h"
#include "engine/trace/layout.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvcc's "file.cu(12): error" becomes "file.cu:12: error", as every other compiler says it, in place. */
static void unify_places(char *text)
{
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *open = line + strcspn(line, "(: \n"), *digit = open + 1;
        if (*open != '(' || !isdigit((unsigned char)*digit))
            continue;
        while (isdigit((unsigned char)*digit))
            digit++;
        if (digit[0] != ')' || digit[1] != ':')
            continue;
        *open = ':';
        memmove(digit, digit + 1, strlen(digit + 1) + 1);
    }
}

char *diagnose_words(const struct diagnose *d, const char *said)
{
    size_t n_from = strlen(d->compiled_path), n_to = strlen(d->user_path), n = 0;
    size_t hits = 0;
    for (const char *at = said; n_from && (at = strstr(at, d->compiled_path)); at += n_from)
        hits++;
    char *out = malloc(strlen(said) + hits * n_to + 1);
    if (!out)
        return NULL;
    while (*said) {
        if (n_from && strncmp(said, d->compiled_path, n_from) == 0) {
            memcpy(out + n, d->user_path, n_to);
            n += n_to;
            said += n_from;
        } else {
            out[n++] = *said++;
        }
    }
    out[n] = '\0';
    unify_places(out);
    return out;
}

static const char *line_begin(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return at;
}

/* "path:12" at the beginning of [line, end): its length, or 0. */
static size_t place_length(const char *line, const char *end)
{
    for (const char *c = line; c + 1 < end; c++)
        if (*c == ':' && isdigit((unsigned char)c[1])) {
            for (c++; c < end && isdigit((unsigned char)*c); c++)
                ;
            return (size_t)(c - line);
        }
    return 0;
}

/* The last "user_path:12" before `before`: where a header's error was asked for. */
static size_t user_place(const struct diagnose *d, const char *text, const char *before, const char **place)
{
    size_t n_path = strlen(d->user_path), length = 0;
    for (const char *at = text; (at = strstr(at, d->user_path)) && at < before; at++)
        if (at[n_path] == ':' && isdigit((unsigned char)at[n_path + 1])) {
            *place = at;
            length = n_path + place_length(at + n_path, before);
        }
    return length;
}

/* Ends a message that was too long at a whole line. */
static void trim(struct err *err, const char *message)
{
    static const char more[] = "\n(more follows)";
    size_t n = strlen(message), room = sizeof err->message - 1;
    if (n > room) {
        n = room - strlen(more);
        while (n > 0 && message[n] != '\n')
            n--;
        if (n == 0)
            n = room - strlen(more);
        snprintf(err->message + n, sizeof err->message - n, "%s", more);
        return;
    }
    while (n > 0 && isspace((unsigned char)err->message[n - 1]))
        err->message[--n] = '\0';
}

static int tell(const char *place, size_t n_place, const char *message, struct err *err)
{
    char where[512];
    snprintf(where, sizeof where, "%.*s", (int)n_place, place);
    err_set(err, ERR_BUILD, where, "%s", message);
    if (err)
        trim(err, message);
    return -1;
}

/* " (in file included from mine.h:3, from k.cu:2)", out of what the compiler says before the line; "": nothing. */
static void includes_before(const char *text, const char *line, char *out, size_t bytes)
{
    static const char first[] = "In file included from ", next[] = "from ";
    const char *at = NULL;
    size_t used = 0;
    out[0] = '\0';
    for (const char *found = text; (found = strstr(found, first)) && found < line; found++)
        at = found;
    while (at && at < line && used < bytes) {
        const char *end = at + strcspn(at, "\n"), *from = memmem(at, (size_t)(end - at), next, sizeof next - 1);
        const size_t n = from ? place_length(from, end) : 0;
        if (!n) /* said of something else */
            break;
        used += (size_t)snprintf(out + used, bytes - used, "%s%.*s", used ? ", " : " (in file included ", (int)n, from);
        at = *end ? end + 1 : end;
    }
    if (at != line)
        out[0] = '\0';
    else if (used && used < bytes)
        snprintf(out + used, bytes - used, ")");
}

/* line: of the header that asks for the missing one. */
static int missing_header(const char *text, const char *line, const char *message, struct err *err)
{
    char name[256], where[512], includes[1024];
    const char *end = strstr(message, ": No such file or directory");
    if (!end || (size_t)(end - message) >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(end - message), message);
    const char *refusal = scan_gpu_only_header(name);
    const bool cutlass = strncmp(name, "cute/", 5) == 0 || strncmp(name, "cutlass/", 8) == 0;
    if (!refusal && !cutlass)
        return 0;
    snprintf(where, sizeof where, "%.*s", (int)place_length(line, message), line);
    includes_before(text, line, includes, sizeof includes);
    if (cutlass)
        return err_set(err, ERR_BUILD, where,
                       "%s: No such file or directory; -I DIR says where CUTLASS's headers are (its include folder)%s",
                       name, includes);
    return err_set(err, ERR_GPU_ONLY, where, "%s%s", refusal, includes);
}

/* Whether `word` stands before the line's end. */
static bool in_line(const char *line, const char *word)
{
    return memmem(line, strcspn(line, "\n"), word, strlen(word)) != NULL;
}

/* Mistakes with the probe macros, in the macros' own words: what the compiler says of them names their insides. */
static int probe_mistake(const struct diagnose *d, const char *message, const char *place, size_t n_place,
                         struct err *err)
{
    char channel[32], names[128] = "", where[512];
    snprintf(where, sizeof where, "%.*s", (int)n_place, place);
    if (d->without_header && (in_line(message, "asc_") || in_line(message, "ASC_")))
        return err_set(err, ERR_BUILD, where, "attnscope.h is not included");
    /* g++, then nvcc. */
    if (strncmp(message, "'asc_here' was not declared", 27) == 0 ||
        strncmp(message, "identifier \"asc_here\" is undefined", 34) == 0)
        return err_set(err, ERR_BUILD, where, "ASC_AT(batch, head, q_tile) must stand before the first probe");
    /* clang++ too. sscanf() counts what it has read, also where the text goes on otherwise: %n tells. */
    static const char *const unknown[] = {"'asc_%31[A-Za-z_0-9]' is not a member of 'asc_named'%n",
                                          "no member named 'asc_%31[A-Za-z_0-9]' in namespace 'asc_named'%n",
                                          "namespace \"asc_named\" has no member \"asc_%31[A-Za-z_0-9]\"%n"};
    int n_read = 0;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0] && !n_read; i++)
        sscanf(message, unknown[i], channel, &n_read);
    if (!n_read)
        return 0;
    /* The line below shows the source, with the probe or with what it became; asc_ names of other lines are the user's
       to spell. */
    const char *shown = strchr(message, '\n');
    if (!shown || (!in_line(shown + 1, "ASC_") && !in_line(shown + 1, "asc_site")))
        return 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", ch ? ", " : "", channel_name(ch));
    return err_set(err, ERR_BUILD, where, "'%s' is not a channel; the channels are %s, and what ASC_VALUES declares",
                   channel, names);
}

/* What ptxas says of an instruction that another architecture has. */
static int missing_instruction(const struct diagnose *d, const char *text, struct err *err)
{
    static const char feature[] = "error   : Feature '", instruction[] = "error   : Instruction '";
    char name[128], architecture[16];
    const char *at = strstr(text, feature);
    if (at && sscanf(at + sizeof feature - 1, "%127[^'\n]' requires .target %15[a-z0-9_] or", name, architecture) == 2)
        return err_set(err, ERR_DECLINED, d->user_path, "needs %s or higher, for %s: this GPU is older", architecture,
                       name);
    at = strstr(text, instruction);
    if (at && sscanf(at + sizeof instruction - 1, "%127[^'\n]' not supported on .target '%15[a-z0-9_]'", name,
                     architecture) == 2)
        return err_set(err, ERR_DECLINED, d->user_path, "uses %s, which this GPU (%s) does not have", name,
                       architecture);
    return 0;
}

static int compiler_error(const struct diagnose *d, const char *text, struct err *err)
{
    if (missing_instruction(d, text, err))
        return -1;
    const char *at = strstr(text, " error: "); /* "fatal error: " as well */
    if (!at)
        return tell(d->user_path, strlen(d->user_path), *text ? text : "the compiler failed without a message", err);
    const char *line = line_begin(text, at), *message = at + strlen(" error: "), *place = line;
    size_t n_place = place_length(line, at), n_path = strlen(d->user_path);
    if (n_place <= n_path || strncmp(line, d->user_path, n_path) != 0 || line[n_path] != ':') {
        const char *user;
        size_t n_user = user_place(d, text, line, &user);
        if (n_user) { /* a header's error: say where the user asked for it, and keep the header's name in the text */
            place = user;
            n_place = n_user;
            message = line;
        }
    }
    const char *words = at + strlen(" error: ");
    if (missing_header(text, line, words, err) || probe_mistake(d, words, place, n_place, err))
        return -1;
    return tell(place, n_place, message, err);
}

int diagnose_compiler(const struct diagnose *d, const char *said, struct err *err)
{
    char *text = diagnose_words(d, said ? said : "");
    if (!text)
        return err_no_memory(err, d->user_path, "the compiler's messages");
    compiler_error(d, text, err);
    free(text);
    return -1;
}

static int linker_error(const struct diagnose *d, const char *text, struct err *err)
{
    const char *whole = d->user_path;
    if (strstr(text, "undefined reference to `asc_describe'"))
        return err_set(err, ERR_BUILD, whole, "does not register a kernel: %s",
                       d->without_header ? "attnscope.h is not included"
                                         : "ASC_RUN(name, ...) is missing, or ASC_KERNEL(name)");
    const char *missing = strstr(text, "cannot find -l");
    if (missing)
        return err_set(err, ERR_SYSTEM, "", "the linker %.*s: install the library's -dev package",
                       (int)strcspn(missing, "\n:"), missing);
    const char *at = strstr(text, "undefined reference to");
    if (!at)
        return tell(whole, strlen(whole), *text ? text : "the linker failed without a message", err);
    const char *line = line_begin(text, at);
    if (strncmp(line, "/usr/bin/ld: ", 13) == 0)
        line += 13;
    size_t n = place_length(line, at);
    /* The line tables' names are absolute, the user's may not be. */
    size_t n_path = strlen(whole), n_file = n ? n - 1 : 0;
    while (n_file > 0 && line[n_file] != ':')
        n_file--;
    if (n_file >= n_path && strncmp(line + n_file - n_path, whole, n_path) == 0) {
        line += n_file - n_path;
        n -= n_file - n_path;
    }
    return n ? tell(line, n, at, err) : tell(whole, n_path, at, err);
}

int diagnose_linker(const struct diagnose *d, const char *said, struct err *err)
{
    char *text = diagnose_words(d, said ? said : "");
    if (!text)
        return err_no_memory(err, d->user_path, "the linker's messages");
    linker_error(d, text, err);
    free(text);
    return -1;
}
