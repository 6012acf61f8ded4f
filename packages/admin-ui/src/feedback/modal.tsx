import type { ModalProps } from '@mantine/core';

import { later } from '../later.ts';
import { LateOver } from './late.tsx';

const Dialog = later(async () => (await import('./late-dialog.ts')).Modal);

/** A dialog of the first load: its own code comes when it opens. */
export function Modal(props: ModalProps) {
  return (
    <LateOver>
      <Dialog {...props} />
    </LateOver>
  );
}
