/* What the event loop holds, and what its files ask of each other. For loop*.c, effects.c, input.c, commands.c. */
#ifndef TUI_LOOP_STATE_H
#define TUI_LOOP_STATE_H

#include "engine/session/declare.h"
#include "tui/keys/actions.h"
#include "tui/prompt.h"
#include "tui/save.h"
#include "tui/search.h"
#include "tui/views/view.h"
#include <stdbool.h>

#define MAX_BACK 8

enum { COUNT_MAX = 1000000 }; /* typed before a key */
enum { NOTES_MAX = 60, NOTE_BYTES = 256 };

/* A few lines above the bottom of the screen, until the next key: what a command lists. */
struct notes {
    char line[NOTES_MAX][NOTE_BYTES];
    int n;
};

struct loop {
    struct session *s;
    struct saver saver;
    struct canvas canvas;
    struct hits hits;
    int cols, rows;
    bool ascii;
    enum view_id view, back[MAX_BACK];
    int n_back;
    struct view_state vs;
    int anchor;         /* where the view stands, by its own words (struct view) */
    int seen;           /* number of the newest run that something was said of */
    struct place first; /* where that one begins to go wrong; slot -1: nowhere */
    struct place stood; /* and where the cursor stood then */
    bool failed;        /* the last build failed, and its panel was opened */
    int naming;         /* number of the run whose name is being typed; 0: none */
    char typed[RUN_NAME_BYTES];
    struct declaring declaring; /* n_lines > 0: the next key answers it */
    bool tries;                 /* access checks of a clean run, while nothing else runs */
    bool drawing_divider;       /* the mouse holds the line between the overview's sides */
    int count;                  /* typed before a key; 0: none */
    enum action pending;        /* mark, go-mark or copy: the next key is a letter; else ACTION_NONE */
    struct prompt prompt;
    struct search search;
    struct notes notes; /* until the next key */
    const char *at;     /* borrowed: where the cursor goes as soon as there is a run; NULL: nowhere, or done */
    bool at_remembered; /* that is where the user left it, not what they asked for */
    int asked;          /* it was said that so many runs are not saved, and nothing else was done since */
    bool quit;
};

void loop_key(struct loop *l, int key);
void loop_act_times(struct loop *l, enum action a, long count); /* 0: none was typed */
/* Goes to the by-th match of l->search.text from here on, < 0: back; 0: a new text, in this view or in one that has it.
 */
void loop_search(struct loop *l, int by);

/* What actions do: the functions of actions.def. */
#define MOVES(verb, by)
#define OPENS(view)
#define DOES(function) void function(struct loop *l);
#define SHOWS(view, function) DOES(function)
#define LEFT_TO_VIEWS
#define ACTION(id, keys, name, hint, help, effect) effect
#include "tui/keys/actions.def"
#undef ACTION
#undef MOVES
#undef OPENS
#undef DOES
#undef SHOWS
#undef LEFT_TO_VIEWS

void loop_open_view(struct loop *l, enum view_id view);
void loop_leave(struct loop *l);               /* the program; asks once where runs would be lost */
void loop_stand(struct loop *l);               /* the view begins where it does */
void loop_act(struct loop *l, enum action a);  /* as if its key had been pressed */
void loop_move(struct loop *l, enum action a); /* an action that moves the cursor, whatever the view makes of it */
void loop_take_mouse(struct loop *l);

void loop_save(struct loop *l, const char *path); /* NULL: a name is chosen */
void loop_show_run(struct loop *l, int number);   /* 0: the one that was shown before */
/* A key while a name is typed. */
void loop_type_name(struct loop *l, int key);
/* Asks whether the finding's lines shall be written; the next key answers. */
void loop_ask_declaration(struct loop *l, const struct finding *f);
void loop_answer_declaration(struct loop *l, int key);
/* What the session has come to since it was asked last: says how a new run compares, opens the panel of a failed build
   and closes it. */
void loop_take_run(struct loop *l);
void loop_take_saved(struct loop *l);
void loop_begin_runs(struct loop *l);

#endif
