/* vm_frame: raw frame -> name, file, first line. Contexts: gvl, ordinary Ruby context (makes Strings). May raise.
 *
 * Names are class-qualified and normalised, so that a method has one name in every process: heap addresses are taken
 * out ("#<Class:0x00007f...>#call" -> "#<Class>#call"), and the random end of a compiled template's method is cut.
 */
#ifndef SONDE_VM_FRAME_H
#define SONDE_VM_FRAME_H

#include <ruby.h>

#include "../core/base.h"

typedef struct sn_vm_frame_text {
  char name[512]; /* cut to this, at a character's end where possible */
  size_t name_length;
  VALUE path; /* String; borrowed: keep it on the stack while it is read */
  int32_t first_line;
} sn_vm_frame_text;

void sn_vm_frame_init(void);
void sn_vm_frame_describe(uint64_t frame, uint64_t aux, sn_vm_frame_text *text);

/* Where the frame's file lies (used to leave Sonde's own frames out); C functions have none. Contexts: gvl; makes no
 * object. */
typedef enum sn_vm_frame_place { SN_FRAME_WITHOUT_FILE, SN_FRAME_BELOW, SN_FRAME_ELSEWHERE } sn_vm_frame_place;
sn_vm_frame_place sn_vm_frame_place_of(uint64_t frame, const char *directory, size_t length);

#endif
