/* Completions for bash, zsh and fish. */
#include "cli/tables.h"
#include "engine/scenario/keys.h"
#include "tui/views/view.h"

#include <string.h>

enum { VALUES_BYTES = 8192 };

/* "f16, bf16 or s8" as words; or "shape.heads=", every key. */
static void key_words(int key, char *room, size_t bytes)
{
    size_t used = 0;
    for (int i = 0; key < 0 && i < KEY_COUNT && used < bytes; i++)
        used += (size_t)snprintf(room + used, bytes - used, "%s%s.%s=", used ? " " : "",
                                 section_names[scenario_keys[i].section], scenario_keys[i].name);
    if (key < 0)
        return;
    for (const char *at = scenario_keys[key].expected; *at && used < bytes;
         at += strcspn(at, ", "), at += strspn(at, ", "))
        if (strncmp(at, "or ", 3) != 0)
            used += (size_t)snprintf(room + used, bytes - used, "%s%.*s", used ? " " : "", (int)strcspn(at, ", "), at);
}

/* Words that an option's value may be, separated by blanks; "": any. Alternatives are in lower case, names of what is
   wanted in upper. */
static const char *values_of(enum option_id option, char *room, size_t bytes)
{
    const char *argument = option_rows[option].argument;
    room[0] = '\0';
    if (option == OPTION_VIEW) {
        for (enum view_id view = 0; view < VIEW_COUNT; view++)
            snprintf(room + strlen(room), bytes - strlen(room), "%s%s", room[0] ? " " : "", view_name(view));
    } else if (option == OPTION_SET || option == OPTION_DTYPE) {
        key_words(option == OPTION_SET ? -1 : KEY_DTYPE, room, bytes);
    } else if (option == OPTION_OVER) {
        static const char *const axes[][2] = {
#define SWEEP_AXIS(key, values, group) {key, group},
#include "engine/sweep/axes.def"
#undef SWEEP_AXIS
        };
        for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
            if (i == 0 || strcmp(axes[i][1], axes[i - 1][1]) != 0)
                snprintf(room + strlen(room), bytes - strlen(room), "%s%s", room[0] ? " " : "", axes[i][1]);
            snprintf(room + strlen(room), bytes - strlen(room), " %s", strchr(axes[i][0], '.') + 1);
        }
    } else if (option == OPTION_ISOLATE) {
        const struct isolation_group *group;
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            snprintf(room + strlen(room), bytes - strlen(room), "%s%s", room[0] ? " " : "", channel_name(ch));
        for (int i = 0; (group = isolation_group(i)); i++)
            if (channel_from_name(group->name) < 0)
                snprintf(room + strlen(room), bytes - strlen(room), " %s", group->name);
    } else if (argument && strchr(argument, '|') && argument[0] >= 'a') {
        snprintf(room, bytes, "%s", argument);
        for (char *c = room; *c; c++)
            if (*c == '|')
                *c = ' ';
        char *wanted = strstr(room, " TRACE"); /* a file */
        if (wanted)
            *wanted = '\0';
    }
    return room;
}

static bool takes_file(enum option_id option)
{
    const char *argument = option_rows[option].argument;
    return argument && (strcmp(argument, "FILE") == 0 || strcmp(argument, "DIR") == 0 || strstr(argument, "TRACE"));
}

static void put_pages(FILE *out)
{
    static const char names[] =
#define PAGE(name, write) " " name
#include "cli/pages.def"
#undef PAGE
        ;
    fputs(names + 1, out);
    fputs(" writing-a-kernel probes my_attention.cu", out); /* of those that lie below docs, where one begins */
}

static void put_commands(FILE *out)
{
    for (int c = 0; c < COMMAND_COUNT; c++)
        fprintf(out, "%s%s", c ? " " : "", command_rows[c].name);
}

/* "--shape --set -D": all that belong to a command. */
static void put_options(FILE *out, int command)
{
    const char *before = "";
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_rows[i].commands & 1u << command) {
            fprintf(out, "%s--%s", before, option_rows[i].name);
            before = " ";
        }
}

/* The parts that bash and zsh write alike: values by the word before, options by the command; behind a key no blank. */
static void put_cases(FILE *out, const char *answer, const char *keys, const char *files)
{
    char room[VALUES_BYTES];
    fputs("    case $previous in\n", out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *o = &option_rows[i];
        if (!o->argument)
            continue;
        fprintf(out, "    --%s", o->name);
        if (o->letter)
            fprintf(out, "|-%c", o->letter);
        const char *values = values_of((enum option_id)i, room, sizeof room);
        fputs(")\n", out);
        if (*values)
            fprintf(out, i == OPTION_SET ? keys : answer, values);
        if (takes_file((enum option_id)i))
            fprintf(out, "        %s\n", files);
        fputs("        return ;;\n", out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        fprintf(out, "    %s) options='", command_rows[c].name);
        put_options(out, c);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n", out);
}

int write_bash_completion(FILE *out)
{
    fputs("# bash completion for attnscope\n_attnscope()\n{\n    local current=${COMP_WORDS[COMP_CWORD]} "
          "previous=${COMP_WORDS[COMP_CWORD-1]}\n    local commands='",
          out);
    put_commands(out);
    fprintf(out,
            "' command=%s word options=\n    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
            "        [[ \" $commands \" == *\" $word \"* ]] && command=$word && break\n    done\n",
            command_rows[COMMAND_OPEN].name);
    put_cases(out, "        COMPREPLY+=($(compgen -W '%s' -- \"$current\"))\n",
              "        compopt -o nospace 2>/dev/null\n        COMPREPLY+=($(compgen -W '%s' -- \"$current\"))\n",
              "COMPREPLY+=($(compgen -f -- \"$current\"))");
    fprintf(out,
            "    if [[ $current == -* ]]; then\n        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
            "    elif [[ $command == %s ]]; then\n        COMPREPLY=($(compgen -W '",
            command_rows[COMMAND_DOCS].name);
    put_pages(out);
    fputs("' -- \"$current\"))\n    else\n        COMPREPLY=($(compgen -f -- \"$current\"))\n"
          "        ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W \"$commands\" -- \"$current\"))\n    fi\n}\n"
          "complete -o filenames -F _attnscope attnscope\n",
          out);
    return ferror(out) ? -1 : 0;
}

int write_zsh_completion(FILE *out)
{
    fputs("#compdef attnscope\n_attnscope()\n{\n    local previous=${words[CURRENT-1]} word options=\n"
          "    local -a commands=(",
          out);
    put_commands(out);
    fprintf(out,
            ")\n    local command=%s\n    for word in ${words[2,CURRENT-1]}; do\n"
            "        (( ${commands[(Ie)$word]} )) && command=$word && break\n    done\n",
            command_rows[COMMAND_OPEN].name);
    put_cases(out, "        compadd -- %s\n", "        compadd -S '' -- %s\n", "_files");
    fprintf(out,
            "    if [[ ${words[CURRENT]} == -* ]]; then\n        compadd -- ${=options}\n"
            "    elif [[ $command == %s ]]; then\n        compadd -- ",
            command_rows[COMMAND_DOCS].name);
    put_pages(out);
    fputs("\n    else\n        (( CURRENT == 2 )) && compadd -- $commands\n        _files\n    fi\n}\n"
          "compdef _attnscope attnscope\n",
          out);
    return ferror(out) ? -1 : 0;
}

/* In single quotes. */
static void put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        fputs(*text == '\'' ? "\\'" : *text == '\\' ? "\\\\" : (char[]){*text, '\0'}, out);
    fputc('\'', out);
}

int write_fish_completion(FILE *out)
{
    char room[VALUES_BYTES];
    fputs("# fish completion for attnscope\n", out);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        fprintf(out, "complete -c attnscope -n __fish_use_subcommand -a %s -d ", command_rows[c].name);
        put_quoted(out, command_rows[c].meaning);
        fputc('\n', out);
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *o = &option_rows[i];
        fputs("complete -c attnscope", out);
        if (o->commands != ~0u) {
            fprintf(out, " -n '%s__fish_seen_subcommand_from",
                    o->commands & 1u << COMMAND_OPEN ? "__fish_use_subcommand; or " : "");
            for (int c = 0; c < COMMAND_COUNT; c++)
                if (o->commands & 1u << c)
                    fprintf(out, " %s", command_rows[c].name);
            fputc('\'', out);
        }
        if (o->letter)
            fprintf(out, " -s %c", o->letter);
        fprintf(out, " -l %s", o->name);
        const char *values = values_of((enum option_id)i, room, sizeof room);
        if (o->argument)
            fputs(takes_file((enum option_id)i) ? " -r -F" : " -x", out);
        if (*values)
            fprintf(out, " -a '%s'", values);
        fputs(" -d ", out);
        put_quoted(out, o->meaning);
        fputc('\n', out);
    }
    fprintf(out, "complete -c attnscope -n '__fish_seen_subcommand_from %s' -f -a '", command_rows[COMMAND_DOCS].name);
    put_pages(out);
    fputs("'\n", out);
    return ferror(out) ? -1 : 0;
}
