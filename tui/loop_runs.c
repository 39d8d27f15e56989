/* The event loop's actions on runs: again, isolated, another one, saved, named; the editor; a failed build's panel. */
#include "engine/base/utf8.h"
#include "engine/session/look.h"
#include "tui/commands.h"
#include "tui/editor.h"
#include "tui/loop_state.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The run that a key is about: the one under the list's cursor, else the one on the screen. */
static int chosen_run(const struct loop *l)
{
    return views[l->view]->run ? views[l->view]->run(l->s, &l->vs) : l->s->runs.shown;
}

void loop_save(struct loop *l, const char *path)
{
    struct err err;
    if (session_busy(l->s))
        session_say(l->s, "wait until the run is judged, or stop it with x");
    else if (saver_start(&l->saver, l->s, views[l->view]->run ? chosen_run(l) : 0, path, &err) != 0)
        session_say(l->s, "%s", err.message);
    else
        session_say(l->s, "saving %.200s", l->saver.path);
}

void loop_take_saved(struct loop *l)
{
    struct err err;
    const int number = l->saver.number ? l->saver.number : l->s->runs.shown;
    if (saver_finish(&l->saver, &err) == 0) {
        session_say(l->s, "saved %.200s", l->saver.path);
        session_note_saved(l->s, number, l->saver.path);
    } else {
        session_say(l->s, "not saved: %.120s%s%.120s", err.where, err.where[0] ? ": " : "", err.message);
    }
}

void act_save(struct loop *l)
{
    loop_save(l, NULL);
}

static struct place first_bad(const struct session *s)
{
    return s->run.judgement ? s->run.judgement->summary.first : (struct place){.slot = -1};
}

/* The run of a saved trace once more; where that can not be, its inputs can go to a kernel that the user names. */
static void run_trace(struct loop *l)
{
    char why[sizeof l->s->message];
    char line[PROMPT_BYTES], scenario[700], words[250];
    if (session_bundle_words(l->s, scenario, words, sizeof words)) { /* of somebody else: never without a question */
        snprintf(line, sizeof line, "replay %s", scenario);
        prompt_open(&l->prompt, ":", line, command_line_complete, l);
        session_say(l->s, "%s", words);
        return;
    }
    const char *source = l->s->run.trace ? l->s->run.trace->info.source_name : "";
    if (session_busy(l->s)) {
        session_say(l->s, "wait until the run is judged, or stop it with x");
        return;
    }
    if (session_revive(l->s) == 0) {
        session_watch(l->s, true);
        session_rerun(l->s);
        return;
    }
    if (l->s->subject.flags_shown)
        return; /* it asks */
    snprintf(why, sizeof why, "%s", l->s->message);
    snprintf(line, sizeof line, "replay %s", access(source, R_OK) == 0 ? source : "");
    prompt_open(&l->prompt, ":", line, command_line_complete, l);
    session_say(l->s, "%.160s; a kernel on its inputs?", why);
}

void act_rerun(struct loop *l)
{
    if (l->saver.active)
        session_say(l->s, "a save is in progress");
    else if (!l->s->subject.has_scenario)
        run_trace(l);
    else
        session_rerun(l->s); /* says itself why not */
}

/* From here on, for every run. */
static int set(struct loop *l, const char *key, const char *value)
{
    struct err err = {0};
    if (session_set(l->s, key, value, &err) == 0)
        return 0;
    session_say(l->s, "%.60s%s%.180s", err.where, err.where[0] ? ": " : "", err.message);
    return -1;
}

void loop_begin_runs(struct loop *l)
{
    l->seen = l->s->run.number;
    l->first = first_bad(l->s);
    l->stood = session_place(l->s);
}

/* When a run takes the place of another the cursor stays where the user put it: what changed is said, and where that
   one goes wrong. It goes there where nobody moved it since the run before, or back to where that one went wrong. */
static void compare_new(struct loop *l)
{
    struct session *s = l->s;
    const struct place first = first_bad(s), last = l->first, stood = l->stood;
    const bool again = l->seen > 0;
    char words[200], place[64];
    l->seen = s->run.number;
    l->first = first;
    l->stood = session_place(s);
    if (!again || s->message[0] || first.slot < 0 || place_same(first, last) || place_same(first, session_place(s)))
        return;
    change_words(&s->run.change, words, sizeof words);
    place_words(s, first, place, sizeof place);
    if (place_same(stood, session_place(s)) || place_same(last, session_place(s))) {
        session_go_first_bad(s);
        l->stood = session_place(s);
        session_say(s, "now first bad %s%s%s", place, words[0] ? "; " : "", words);
    } else {
        session_say(s, "first bad %s: g goes there%s%s", place, words[0] ? "; " : "", words);
    }
}

void loop_take_run(struct loop *l)
{
    struct session *s = l->s;
    if (s->run.number > l->seen && l->view == VIEW_ERRORS)
        loop_go_back(l);
    const bool failed = session_failed_to_show(s) && s->job.err.code != ERR_CANCELLED;
    if (failed && !l->failed)
        loop_open_view(l, VIEW_ERRORS);
    l->failed = failed;
    if (!session_busy(s) && s->run.number > l->seen)
        compare_new(l);
}

void act_isolate(struct loop *l)
{
    struct isolation_request request;
    isolation_of_stage(l->s->at.cursor.channel, &request);
    if (l->saver.active)
        session_say(l->s, "a save is in progress");
    else if (!l->s->subject.has_scenario)
        run_trace(l);
    else
        session_isolate(l->s, &request); /* says itself why not */
}

/* From here on every run of this session is followed by it. */
void act_profile(struct loop *l)
{
    if (!l->s->subject.has_scenario) {
        session_say(l->s, SESSION_NO_KERNEL);
    } else if (l->saver.active || set(l, "scenario.profile", "yes") == 0) {
        act_rerun(l);
    }
}

/* From here on, until the key is pressed again. */
void act_checks(struct loop *l)
{
    if (!l->s->subject.has_scenario) {
        session_say(l->s, SESSION_NO_KERNEL);
    } else if (l->s->subject.scenario.backend == SCENARIO_BACKEND_GPU) {
        session_say(l->s, "the scenario says backend = gpu: only the CPU executor can check accesses");
    } else if (l->saver.active || set(l, "scenario.checks", l->s->subject.scenario.checks ? "no" : "yes") == 0) {
        act_rerun(l);
    }
}

/* While a save reads a trace, no other one comes to the screen. */
void loop_show_run(struct loop *l, int number)
{
    if (l->saver.active)
        session_say(l->s, "a save is in progress");
    else if (number ? session_show_run(l->s, number) == 0 : session_flip(l->s) == 0)
        l->anchor = -1; /* its source stands elsewhere */
}

void act_flip(struct loop *l)
{
    loop_show_run(l, 0);
}

void act_watch(struct loop *l)
{
    const bool on = !session_watching(l->s);
    if (session_watch(l->s, on) == 0)
        session_say(l->s, "%s",
                    on ? "watching: saved changes are built and run at once" : "not watching: r runs what was saved");
}

void act_edit(struct loop *l)
{
    char file[256];
    const struct view *view = views[l->view];
    const int line = view->place ? view->place(l->s, &l->vs, file, sizeof file) : 0;
    if (line > 0)
        editor_open(l->s, file, line);
    else
        editor_open_source(l->s);
}

void loop_ask_declaration(struct loop *l, const struct finding *f)
{
    l->notes.n = session_ask_declaration(l->s, f, &l->declaring) == 0 ? 2 : 1;
    snprintf(l->notes.line[0], sizeof l->notes.line[0], "%s", l->declaring.question);
    snprintf(l->notes.line[1], sizeof l->notes.line[1], "Enter: yes   Esc: no");
}

void loop_answer_declaration(struct loop *l, int key)
{
    l->notes.n = 0;
    if (key == KEY_ID_ENTER)
        session_declare(l->s, &l->declaring);
    else
        session_say(l->s, "nothing is changed");
    l->declaring.n_lines = 0;
}

void act_name_run(struct loop *l)
{
    const int i = runs_index(&l->s->runs, chosen_run(l));
    if (i < 0) {
        session_say(l->s, "there is no run to name yet");
        return;
    }
    l->naming = l->s->runs.at[i].number;
    snprintf(l->typed, sizeof l->typed, "%s", l->s->runs.at[i].name);
    session_say(l->s, "name of run %d: %s_", l->naming, l->typed);
}

void loop_type_name(struct loop *l, int key)
{
    size_t n = strlen(l->typed);
    char bytes[5] = "";
    if (key == KEY_ID_SPACE)
        key = ' ';
    if (key == KEY_ID_ENTER || key == KEY_ID_ESC) {
        if (key == KEY_ID_ENTER)
            session_name_run(l->s, l->naming, l->typed);
        l->naming = 0;
        session_hush(l->s);
        return;
    }
    if (key == KEY_ID_BACKSPACE) {
        while (n > 0 && ((unsigned char)l->typed[n - 1] & 0xC0) == 0x80)
            n--;
        l->typed[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= 0x20 && key < KEY_ID_NONE && key != 0x7F) {
        const size_t length = utf8_write((uint32_t)key, bytes);
        if (n + length < sizeof l->typed)
            memcpy(l->typed + n, bytes, length + 1);
    }
    session_say(l->s, "name of run %d: %s_", l->naming, l->typed);
}
