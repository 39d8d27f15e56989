/* Keys about the files that inputs are of: [inputs]. */
#include "engine/scenario/keys_set.h"

#include "engine/scenario/value.h"

#include <string.h>

int key_set_input(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)s; /* scenario_said() has it */
    (void)id;
    return value[0] && strlen(value) < INPUT_PATH_BYTES ? 0 : -1;
}

int key_set_inputs_layout(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    int layout;
    if (value_choice(&layout, problem_layout_names, value) != 0 || layout == ASC_THD)
        return -1;
    s->inputs.layout = layout;
    return 0;
}

/* "FIRST:END", as in Python: END is the first that is not taken. */
int key_set_cut(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct cut *const cuts[] = {&s->inputs.batches, &s->inputs.heads, &s->inputs.q_rows, &s->inputs.kv_rows};
    struct cut cut = {0, 0};
    char word[16];
    if (strcmp(value, "all") != 0 &&
        (!value_word(&value, ":", word, sizeof word) || value_integer(word, 0, VALUE_LENGTH_MAX, &cut.first) != 0 ||
         *value != ':' || value_integer(value + 1, 1, VALUE_LENGTH_MAX, &cut.end) != 0 || cut.first >= cut.end))
        return -1;
    *cuts[id - KEY_INPUT_BATCHES] = cut;
    return 0;
}
