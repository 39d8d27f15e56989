#include "engine/base/bounded_json.h"

#include "engine/base/text.h"
#include <string.h>

/* jansson takes some 100 bytes for each value, the text as little as two: a header of 100 MB could ask for gigabytes.
 */
enum { VALUES_MAX = 1 << 20 };

/* An upper bound on the values in a text: every value but the first of its container follows a comma. */
static size_t count_values(const char *text, size_t n_bytes)
{
    size_t n = 1;
    int in_string = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        const char c = text[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '[' || c == '{'))
            n++;
    }
    return n;
}

json_t *bounded_json(const char *text, size_t n_bytes, const char *where, struct err *err)
{
    if (count_values(text, n_bytes) > VALUES_MAX) {
        err_set(err, ERR_INPUT, where, "holds more than %d JSON values", VALUES_MAX);
        return NULL;
    }
    json_error_t error;
    json_t *value = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!value) {
        char words[JSON_ERROR_TEXT_LENGTH];
        err_set(err, ERR_INPUT, where, "is not valid JSON at byte %d: %s", error.position,
                text_name(error.text, strlen(error.text), words, sizeof words));
    }
    return value;
}
