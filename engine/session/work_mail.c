/* The mailbox between the session's owner and its threads. */
#include "engine/session/work_parts.h"

#include "engine/base/clock.h"
#include "engine/verdict/onset.h"
#include <stdlib.h>
#include <unistd.h>

int work_fd(const struct work *w)
{
    return w->event_fd;
}

bool work_busy(const struct work *w)
{
    return atomic_load(&w->busy);
}

void work_wake(struct work *w)
{
    uint64_t one = 1;
    if (write(w->event_fd, &one, sizeof one) < 0)
        return; /* the counter is full: the reader has something to read anyway */
}

void work_signal(struct work *w)
{
    atomic_store(&w->mailed, 1);
    work_wake(w);
}

void work_turn(struct work *w, enum runner_step step)
{
    const double now = clock_seconds();
    if (w->mail.step != STEP_NONE)
        w->mail.spent.step[w->mail.step] += now - w->mail.since;
    w->mail.step = step;
    w->mail.since = now;
}

void work_enter(struct work *w, enum phase phase, enum runner_step step)
{
    pthread_mutex_lock(&w->lock);
    w->mail.phase = phase;
    work_turn(w, step);
    w->mail.done = w->mail.total = 0;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
}

bool work_collect(struct work *w, struct mail *mail)
{
    uint64_t count;
    /* A wake-up may be lost: what was mailed counts. */
    if (read(w->event_fd, &count, sizeof count) < 0 && !atomic_load(&w->mailed))
        return false;
    if (!atomic_exchange(&w->mailed, 0))
        return false;
    pthread_mutex_lock(&w->lock);
    *mail = w->mail;
    w->mail.trace = NULL;
    w->mail.judgement = NULL;
    w->mail.findings = NULL;
    w->mail.onset = NULL;
    w->mail.complete = 0;
    w->mail.summed = false;
    w->mail.log = (struct log){0};
    w->mail.reads = NULL;
    w->mail.said[0] = '\0';
    w->mail.n_reads = 0;
    w->mail.finished = 0;
    w->mail.err = (struct err){0};
    pthread_mutex_unlock(&w->lock);
    if (mail->finished)
        atomic_store(&w->busy, 0);
    return true;
}

void work_drop_mail(struct mail *mail)
{
    judgement_free(mail->judgement);
    trace_free(mail->trace);
    free(mail->findings);
    run_onset_free(mail->onset);
    log_free(&mail->log);
    for (size_t i = 0; i < mail->n_reads; i++)
        free(mail->reads[i]);
    free(mail->reads);
}
