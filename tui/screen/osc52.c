#include "tui/screen/osc52.h"

#include <stdlib.h>
#include <string.h>

#define SCREEN_BYTES 512 /* of one piece; GNU screen takes at most 768 */

/* ESC ] 52 ; c ; base64 (RFC 4648) BEL. Returns the end. */
static char *put_plain(char *at, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t length = strlen(text);
    at = stpcpy(at, "\033]52;c;");
    for (size_t i = 0; i < length; i += 3) {
        const unsigned char *b = (const unsigned char *)text + i;
        const size_t left = length - i;
        const unsigned bits = (unsigned)b[0] << 16 | (left > 1 ? (unsigned)b[1] << 8 : 0) | (left > 2 ? b[2] : 0);
        for (size_t k = 0; k < 4; k++)
            *at++ = k > left ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
    *at++ = '\a';
    return at;
}

static char *put_pieces(char *at, const char *plain, size_t n)
{
    for (size_t i = 0; i < n; i += SCREEN_BYTES) {
        const size_t piece = n - i < SCREEN_BYTES ? n - i : SCREEN_BYTES;
        at = stpcpy(at, "\033P");
        memcpy(at, plain + i, piece);
        at = stpcpy(at + piece, "\033\\");
    }
    return at;
}

char *osc52_sequence(const char *text, const char *term, const char *tmux, const char *screen, size_t *n)
{
    const size_t plain_bytes = (strlen(text) + 2) / 3 * 4 + 8;
    char *plain = malloc(plain_bytes + 1);
    char *out = malloc(2 * plain_bytes + (plain_bytes / SCREEN_BYTES + 1) * 4 + 16), *at = out;
    if (!plain || !out) {
        free(plain);
        free(out);
        return NULL;
    }
    const size_t length = (size_t)(put_plain(plain, text) - plain);
    if (tmux && *tmux) {
        /* tmux does it itself where set-clipboard is on, else passes on what is wrapped where allow-passthrough is; the
           one escape in it is doubled. */
        memcpy(at, plain, length);
        at = stpcpy(at + length, "\033Ptmux;\033");
        memcpy(at, plain, length);
        at = stpcpy(at + length, "\033\\");
    } else if ((screen && *screen) || (term && strncmp(term, "screen", 6) == 0)) {
        at = put_pieces(at, plain, length);
    } else {
        memcpy(at, plain, length);
        at += length;
    }
    *n = (size_t)(at - out);
    free(plain);
    return out;
}
