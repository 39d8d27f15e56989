# attnscope. `make` builds, `make run` opens the debugger on a failing kernel, `make test` runs every test; all output is
# below build/. Packages are installed by `make setup`, and by run and test where some are missing; by nothing else.
# Yours to set: CC AR CFLAGS CPPFLAGS LDFLAGS PREFIX DESTDIR. What the project cannot do without comes behind yours.
MODE ?= release
ifeq ($(MODE),release)
B := build
CFLAGS ?= -O2 -g -D_FORTIFY_SOURCE=2
SANITIZE :=
else ifeq ($(MODE),asan)
B := build/asan
CFLAGS ?= -O1 -g -fno-omit-frame-pointer
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(MODE),fuzz)
# What libFuzzer watches: made by `make fuzz` alone.
CC := clang
B := build/fuzz
CFLAGS ?= -O1 -g -fno-omit-frame-pointer
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -w
else
$(error MODE is release, asan or fuzz, not '$(MODE)')
endif

# V=1 shows the commands; WERROR=1 ends the build at a warning.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)")
# Titles and messages are cut to their place on purpose; clang has no such warning, and no such option.
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
WARNINGS := -Wall -Wextra -Wpedantic $(if $(IS_CLANG),,-Wno-format-truncation) $(if $(filter 1,$(WERROR)),-Werror)
# No contraction into FMA: input fills and verdicts are the same bits on every machine.
OWN_CFLAGS := -std=c11 -D_GNU_SOURCE -DATTNSCOPE_VERSION=$(file <VERSION) -I. -ffp-contract=off -MMD -MP
$(if $(filter -Ofast -ffast-math,$(CFLAGS)),$(error CFLAGS: fast math assumes that there is no NaN, and finding NaN is what attnscope does))
COMPILE = $(CC) $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(OWN_CFLAGS) $(SANITIZE)
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS)
LIBS := -lncursesw -ltinfo -ljansson -linih -lxxhash -lminizip -lz -lpthread -lm $(LDLIBS)

# engine/simt, engine/gpu and engine/child/debuggee are linked to kernels, not to the program.
ROOMS := $(addprefix engine/,base trace scenario oracle oracle/causes oracle/search oracle/nonfinite oracle/quantization \
         oracle/rounding_bias oracle/mask judge build child verdict bundle remote run study sweep cursor session) tui/screen tui/keys tui/views tui
SRC := $(wildcard $(addsuffix /*.c,$(ROOMS)))
OBJ := $(SRC:%.c=$(B)/obj/%.o)
CLI := $(wildcard cli/*.c)
CLI_OBJ := $(CLI:%.c=$(B)/obj/%.o)
PROGRAM := $(B)/attnscope

# What a debuggee links on the CPU; never sanitized (it switches stacks), so shared by every MODE.
DEBUGGEE_SRC := $(wildcard engine/child/debuggee/*.c) engine/base/wire.c engine/base/json_memory.c engine/base/dtype.c engine/trace/layout.c engine/trace/problem.c engine/trace/placed.c engine/trace/rope.c engine/trace/conventions.c engine/trace/live.c engine/trace/launch.c engine/trace/event.c engine/base/err.c engine/base/occupancy.c
SIMT_SRC := $(wildcard engine/simt/*.c engine/simt/checks/*.c) $(DEBUGGEE_SRC) engine/base/tensor_core.c
SIMT_OBJ := $(SIMT_SRC:%.c=build/simt/%.o)
SIMT := build/libdebuggee_cpu.a
# A debuggee links the static jansson where there is one, so that it starts without the package.
JANSSON := $(wildcard $(shell $(CC) -print-file-name=libjansson.a 2>/dev/null))
COMPILE_SIMT = $(CC) $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(OWN_CFLAGS) -O2 -fno-strict-aliasing -fno-lto

# What a debuggee links on a GPU, where the CUDA Toolkit is: CUDA_HOME, else that of the nvcc on PATH.
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc))),/usr/local/cuda)
CUDA_INCLUDE := $(firstword $(dir $(wildcard $(addsuffix /cuda_runtime_api.h,$(CUDA_HOME)/include $(CUDA_HOME)/targets/*/include /usr/include))))
GPU_OBJ := $(patsubst %.c,build/gpu/%.o,$(filter-out %_main.c,$(wildcard engine/gpu/*.c)))
GPU := $(if $(CUDA_INCLUDE),build/libdebuggee_gpu.a)
DEVICE := build/attnscope-device
# Judges on a GPU. nvcc takes minutes for it: `make judge` builds it.
JUDGE := build/attnscope-judge
# What a kernel includes: one file, made of the parts in probes/.
HEADER := build/include/attnscope.h
# What a program of the user's links to capture its own launches.
CAPTURE := build/libattnscope-capture.so
CAPTURE_SRC := $(wildcard engine/capture/*.c) $(patsubst %,engine/%.c,gpu/driver gpu/copy_out base/dtype base/err trace/live trace/layout trace/problem trace/placed trace/conventions)
CAPTURE_OBJ := $(CAPTURE_SRC:%.c=build/capture/%.o)
DEBUGGEES := $(HEADER) $(CAPTURE) $(SIMT) $(GPU) $(DEVICE) $(if $(JANSSON),build/libjansson.a)

# Programs of the tests. Each is one file, found by its name in these folders, and build/tests has it.
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT := $(addprefix $(B)/tests/,$(basename $(notdir $(UNIT_SRC))))
# What several of them use.
TEST_LIB := $(B)/tests/libtest.a
TEST_LIB_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/unit/lib/*.c))
vpath %.c tests tests/random tests/checks tests/gpu tests/fuzz $(sort $(dir $(UNIT_SRC)))
RANDOM_RUNS := $(B)/tests/random_runs
RUN_CHECKED := $(B)/tests/run_checked
CAUSE_GRID := $(B)/tests/cause_grid
BIAS_NULL := $(B)/tests/bias_null
LENGTH := $(B)/tests/length
BENCH := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench_*.c))
BENCH_PHASES := $(addprefix $(B)/tests/,bench_phases bench_stages)
FUZZ := $(patsubst tests/fuzz/%.c,$(B)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
# Beside the target: what all of them use, the reports of the commands, and a main() where libFuzzer has none.
FUZZ_OBJ := $(B)/obj/tests/fuzz/show.o $(if $(filter fuzz,$(MODE)),,$(B)/obj/tests/fuzz/driver.o) $(filter-out %/main.o,$(CLI_OBJ))

# `make install PREFIX=/usr/local DESTDIR=`: the program, what it builds kernels with, what the kernels include.
PREFIX ?= /usr/local
BIN := $(DESTDIR)$(PREFIX)/bin
DATA := $(DESTDIR)$(PREFIX)/share/attnscope
LIB := $(DESTDIR)$(PREFIX)/lib/attnscope
MAN := $(DESTDIR)$(PREFIX)/share/man/man1
BASH_COMPLETION := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETION := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETION := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

.PHONY: all judge install uninstall deb run test monkey fuzz fuzz-targets mutants bias truth truth-long test-quick test-gpu acceptance lint bench bench-gpu fp8 length docs docs-loop clean
all: $(PROGRAM) $(DEBUGGEES)
	$(call say,CUDA Toolkit: $(if $(GPU),$(CUDA_HOME),not found: kernels run on the CPU))

install: all
	$(Q)install -d "$(BIN)" "$(DATA)" "$(LIB)" "$(MAN)" "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"
	$(Q)install -m 755 $(PROGRAM) "$(BIN)/attnscope"
	$(Q)install -m 644 $(filter %.a,$(DEBUGGEES)) "$(LIB)"
	$(Q)install -D -m 644 -t "$(DESTDIR)$(PREFIX)/include" $(HEADER) build/include/attnscope_cute.h
	$(Q)install -m 755 $(DEVICE) $(wildcard $(JUDGE)) "$(LIB)"
	$(Q)install -m 755 $(CAPTURE) "$(DESTDIR)$(PREFIX)/lib"
	$(Q)install -m 644 build/include/attnscope_capture.h "$(DESTDIR)$(PREFIX)/include"
	$(Q)find probes engine/base engine/trace engine/child engine/simt engine/standin engine/gpu kernels scenarios -type f \( -name '*.h' -o -name '*.def' -o -name '*.inc' -o -name '*.cu' -o -name '*.cuh' \
	    -o -name '*.ini' -o -name '*.patch' -o -path 'engine/simt/include/*' -o -path 'engine/standin/include/*' \) -exec install -D -m 644 {} "$(DATA)/{}" \;
	$(Q)find docs -maxdepth 1 -name '*.md' -exec install -D -m 644 -t "$(DATA)/docs" {} +
	$(Q)install -D -m 644 -t "$(DATA)/docs/examples" docs/examples/*
	$(Q)$(PROGRAM) docs man > "$(MAN)/attnscope.1"
	$(Q)$(PROGRAM) docs completion-bash > "$(BASH_COMPLETION)/attnscope"
	$(Q)$(PROGRAM) docs completion-zsh > "$(ZSH_COMPLETION)/_attnscope"
	$(Q)$(PROGRAM) docs completion-fish > "$(FISH_COMPLETION)/attnscope.fish"
	$(Q)chmod 644 "$(MAN)/attnscope.1" "$(BASH_COMPLETION)/attnscope" "$(ZSH_COMPLETION)/_attnscope" "$(FISH_COMPLETION)/attnscope.fish"
	$(call say,INSTALL "$(BIN)/attnscope")

deb: needs-deb all
	@MAKE='$(MAKE)' packaging/deb $(B)

# A Python wheel of the same and of python/attnscope, with static libraries.
.PHONY: wheel
wheel: all
	@MAKE='$(MAKE)' CC='$(CC)' packaging/wheel $(B)

# Installs the packages that are missing for building, running and testing, and says which.
SETUP := CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' LDFLAGS='$(LDFLAGS)' .ci/setup
.PHONY: setup setup-build setup-run setup-test setup-lint setup-deb needs-build needs-test needs-deb
setup: setup-test
setup-build setup-run setup-test setup-lint setup-deb: setup-%:
	@$(SETUP) $*

# The headers of CUTLASS, from PyPI, for kernels/cute: nothing else needs them.
.PHONY: setup-cute
setup-cute: build/cute/cutlass_library
build/cute/cutlass_library:
	$(call say,CUTLASS build/cute)
	$(Q)python3 -m pip install --quiet --no-deps --target build/cute nvidia-cutlass==4.2.0.0

# Installs nothing: ends make with the names of the packages that are missing.
needs-build needs-test needs-deb: needs-%:
	@$(SETUP) --check $*

uninstall:
	$(Q)rm -rf "$(DATA)" "$(LIB)" "$(DESTDIR)$(PREFIX)/lib/$(notdir $(CAPTURE))"
	$(Q)rm -f "$(BIN)/attnscope" "$(DESTDIR)$(PREFIX)/include/attnscope.h" "$(DESTDIR)$(PREFIX)/include/attnscope_cute.h" "$(DESTDIR)$(PREFIX)/include/attnscope_capture.h" "$(MAN)/attnscope.1" "$(BASH_COMPLETION)/attnscope" "$(ZSH_COMPLETION)/_attnscope" \
	    "$(FISH_COMPLETION)/attnscope.fish"

# What is built is decided when a Makefile is read: once more behind the installation, which may have changed it.
run: setup-run
	@$(MAKE) --no-print-directory all
	@packaging/demo $(B)
	@$(PROGRAM) $(B)/demo/attention.cu

# The first tier: less than a minute on two idle cores. What is in it, and why, stands in tests/quick.list.
QUICK_UNIT := $(shell sed -n 's,^unit/\(test_[a-z0-9_]*\).*,$(B)/tests/\1,p' tests/quick.list)
test-quick: setup-test
	@$(MAKE) --no-print-directory all $(QUICK_UNIT)
	@tests/run --build $(B) --quick

test: setup-test
	@$(MAKE) --no-print-directory all $(UNIT) $(RANDOM_RUNS) $(RUN_CHECKED) $(FUZZ)
	@tests/run --build $(B)

# 100,000 random keys, clicks, commands and resizes under the sanitizers: a quarter of an hour. What a failure prints
# plays its session again; MONKEY='--seed S --inputs N' are options of tests/monkey/monkey.py.
monkey:
	@$(MAKE) --no-print-directory MODE=asan all build/asan/tests/test_screen
	@tests/monkey/monkey.py $(MONKEY)

# Every fuzz target for FUZZ_TIME seconds, from the corpus that `make test` replays (a crash is kept there), then every
# kernel that misbehaves and every call that can fail: hours. With FUZZ_OPTIONS the fuzz targets alone.
FUZZ_TIME ?= 600
fuzz: all
	@tests/fuzz/fuzz.py --seconds $(FUZZ_TIME) $(FUZZ_OPTIONS)
	$(if $(FUZZ_OPTIONS),,@tests/faults/test_evil.py --all)
	$(if $(FUZZ_OPTIONS),,@tests/faults/test_faults.py --full)

fuzz-targets: $(FUZZ)
.SECONDARY: $(FUZZ_OBJ)

test-gpu: all judge $(BENCH_PHASES) $(addprefix $(B)/tests/,test_gpu_judge test_gpu_stages)
	@tests/run --build $(B) --gpu --jobs 2

acceptance: $(PROGRAM) $(DEBUGGEES) $(RANDOM_RUNS) $(RUN_CHECKED) $(CAUSE_GRID)
	@tests/acceptance --build $(B)

lint: setup-lint
	@tests/lint

# Every mutant of every kernel, into docs/checks.md: many minutes.
mutants: $(DEBUGGEES) $(RUN_CHECKED)
	@tests/checks/mutate.py --build $(B)/tests --write

# Ten thousand correct runs of which none may be called biased: minutes.
bias: $(BIAS_NULL)
	@$(BIAS_NULL) 10000

bench: all $(RUN_CHECKED) $(BENCH) $(B)/tests/bench_phases
	@tests/bench --build $(B)

bench-gpu: all judge $(BENCH_PHASES)
	@tests/gpu/bench_gpu.py --build $(B)

fp8: all
	@tests/fp8/rms.py --build $(B)

# Every mistake of the scenarios and 3000 random correct runs, into docs/truth.md: a quarter of an hour.
truth: all $(RANDOM_RUNS) $(LENGTH) $(FUZZ)
	@tests/truth/truth.py --build $(B)

# What is seen in rows of up to 262,144 keys, and 1000 correct runs, into docs/truth.md: minutes.
length: $(LENGTH)
	@tests/truth/truth.py --build $(B) --length

# 10,000 random runs of correct kernels with seeds of their own; TRUTH_PART=2/8: the second of eight parts.
truth-long: all $(RANDOM_RUNS)
	@tests/truth/truth.py --build $(B) --long $(if $(TRUTH_PART),--part $(TRUTH_PART))

docs: all
	@docs/generate --build $(B)

# The moving picture of the README, from its file of keys.
docs-loop: all
	@docs/pictures/loop $(PROGRAM)

clean:
	rm -rf build

$(PROGRAM): $(CLI_OBJ) $(B)/libattnscope.a
	$(call say,LINK $@)
	$(Q)$(LINK) -o $@ $(CLI_OBJ) $(B)/libattnscope.a $(LIBS)

$(B)/libattnscope.a: $(OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(OBJ)

$(SIMT): $(SIMT_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(SIMT_OBJ)

# The oracle is loops over elements; it reads neither errno nor the floating-point flags. The sanitizers' build multiplies
# as fast: its tests judge as much. Who asks for code to be stepped through has it.
FAST := $(if $(filter -O0 -Og,$(CFLAGS)),,-O3)
ifeq ($(MODE),release)
$(B)/obj/engine/oracle/%.o: OWN_CFLAGS += $(FAST) -fno-math-errno -fno-trapping-math
endif
$(B)/obj/engine/oracle/multiply.o: OWN_CFLAGS += $(FAST)

# Where --version comes from.
$(B)/obj/cli/options.o $(B)/obj/engine/remote/stream.o: VERSION

$(B)/obj/%.o: %.c | needs-build
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(COMPILE) -c -o $@ $<

$(HEADER): probes/one_header $(wildcard probes/*.h probes/*.def) engine/base/dtypes.def
	@mkdir -p $(@D)
	$(call say,HEADER $@)
	$(Q)cp probes/attnscope_cute.h $(@D)/
	$(Q)probes/one_header "$(CC)" >$@.new && mv $@.new $@

build/capture/%.o: %.c | needs-build
	@mkdir -p $(@D)
	$(call say,CC $< (capture))
	$(Q)$(COMPILE_SIMT) -fPIC -fvisibility=hidden -c -o $@ $<

$(CAPTURE): $(CAPTURE_OBJ) engine/capture/attnscope_capture.h
	$(call say,LINK $@)
	$(Q)cp engine/capture/attnscope_capture.h build/include/
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs -o $@ $(CAPTURE_OBJ) -ldl -lpthread -lm

build/libdebuggee_gpu.a: $(GPU_OBJ) $(DEBUGGEE_SRC:%.c=build/simt/%.o)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

build/libjansson.a: $(JANSSON)
	$(Q)cp $< $@

$(DEVICE): $(patsubst %,engine/gpu/%.c,device_main guardian driver copy_out kept_files) $(patsubst %,build/simt/engine/base/%.o,dtype tensor_core) | needs-build
	@mkdir -p $(@D)
	$(call say,LINK $@)
	$(Q)$(COMPILE_SIMT) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -ldl -lpthread -lm

judge: $(JUDGE)
$(JUDGE): $(wildcard engine/judge/*.cu engine/judge/*.cuh) engine/judge/work.h engine/judge/ask.h engine/oracle/formula.h engine/base/exp.h engine/base/format.h engine/base/dtype.h
	@mkdir -p $(@D)
	@test -x "$(CUDA_HOME)/bin/nvcc" || { echo "make judge: there is no nvcc in $(CUDA_HOME)/bin" >&2; exit 1; }
	$(call say,NVCC $@)
	$(Q)"$(CUDA_HOME)/bin/nvcc" -std=c++17 -O3 -fmad=false --threads 0 -I. -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -o $@ engine/judge/judge_main.cu

build/gpu/%.o: %.c | needs-build
	@mkdir -p $(@D)
	$(call say,CC $< (debuggee on a GPU))
	$(Q)$(COMPILE_SIMT) -isystem $(CUDA_INCLUDE) -c -o $@ $<

build/simt/%.o: %.c | needs-build
	@mkdir -p $(@D)
	$(call say,CC $< (debuggee))
	$(Q)$(COMPILE_SIMT) -c -o $@ $<

$(TEST_LIB): $(TEST_LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(TEST_LIB_OBJ)
$(TEST_LIB_OBJ): | needs-test

$(B)/tests/%: %.c $(B)/libattnscope.a
	@mkdir -p $(@D)
	$(call say,CC $<)
	$(Q)$(COMPILE) -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< $(filter %.o,$^) $(filter %libtest.a,$^) $(B)/libattnscope.a $(TEST_LIBS) $(LIBS)

$(UNIT) $(B)/tests/bench_screen $(CAUSE_GRID): TEST_LIBS := -lcmocka -lvterm -lutil
$(UNIT) $(B)/tests/bench_screen $(BIAS_NULL) $(LENGTH) $(CAUSE_GRID): $(TEST_LIB) | needs-test
$(FUZZ): TEST_LIBS := $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer)
$(FUZZ): $(FUZZ_OBJ)
# The host side of tests/gpu/numerics.sh.
$(B)/tests/test_numerics: $(patsubst %,$(B)/obj/tests/gpu/numerics_%.o,models products scan table)

-include $(shell find $(B)/obj build/simt build/gpu build/capture $(B)/tests $(DEVICE).d -name '*.d' 2>/dev/null)
