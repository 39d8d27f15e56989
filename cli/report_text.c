#include "cli/report.h"

#include "engine/base/utf8.h"
#include <stdlib.h>
#include <string.h>

/* XML 1.0, section 2.2: Char. utf8_decode() has already refused surrogates and what lies beyond U+10FFFF. */
static int is_character(uint32_t code)
{
    return code >= 0x20 ? code != 0xFFFE && code != 0xFFFF : code == '\t' || code == '\n' || code == '\r';
}

/* What stands for a character that means something to XML, or NULL. A carriage return would be read as a line feed
   (section 2.11), a line break or tab in an attribute as a blank (section 3.3.3). */
static const char *reference(uint32_t code, enum text_use use)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\r':
        return "&#13;";
    case '\n':
        return use == TEXT_ATTRIBUTE ? "&#10;" : NULL;
    case '\t':
        return use == TEXT_ATTRIBUTE ? "&#9;" : NULL;
    default:
        return NULL;
    }
}

char *report_text(const char *text, enum text_use use)
{
    enum { LONGEST = 6 }; /* bytes that one byte of text can become: &quot; */
    char *out = malloc(strlen(text) * LONGEST + 1), *at = out;
    if (!out)
        return NULL;
    uint32_t code;
    for (size_t n; (n = utf8_decode(text, &code)) > 0; text += n) {
        const char *name = use == TEXT_JSON ? NULL : reference(code, use);
        if (name)
            at = stpcpy(at, name);
        else
            at += utf8_write(use == TEXT_JSON || is_character(code) ? code : UTF8_REPLACEMENT, at);
    }
    *at = '\0';
    return out;
}
