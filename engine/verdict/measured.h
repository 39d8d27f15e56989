/* Declarations that are measured, not tested: where O and LSE are right and m or P is not what was declared, the
   captured values say what would be. */
#ifndef VERDICT_MEASURED_H
#define VERDICT_MEASURED_H

#include "engine/verdict/judgement.h"
#include <stdbool.h>

/* "m stays up to 7.3 below ...: m_policy = lagging, m_lag = 7.3 or more"; of m or p alone. false: nothing fits. */
bool measured_words(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                    struct judge_scratch *scratch, char *out, size_t bytes);

#endif
