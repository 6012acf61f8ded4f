import { notifications } from '@mantine/notifications';
import { createElement, type ReactNode } from 'react';
import { explain, isSessionLost, titleOf, toFault } from '../api/fault.ts';
import { withLocalTimes } from '../values/format.ts';
import { UndoMessage } from './undo-message.tsx';

/** One message at a time: the newest replaces the one before. Each has its own id, because the timer of an id is not started again. */
let shown = 0;
const idOf = (number: number): string => `message-${number}`;

export interface Undo {
  readonly label: string;
  readonly run: () => void;
}

/** `undo`: a button beside the message; there is longer to think then. */
export function sayDone(message: string, undo?: Undo): void {
  const text = withLocalTimes(message);
  show({
    title: null,
    message: undo === undefined ? text : createElement(UndoMessage, { text, undo, onDone: () => notifications.hide(idOf(shown)) }),
    color: 'accent',
    autoClose: undo === undefined ? 6000 : 15_000,
  });
}

/** Errors stay until they are read. */
export function sayFailed(error: unknown): void {
  const fault = toFault(error);
  // The login form is on its way; a second message would only hide it.
  if (isSessionLost(fault)) return;
  show({ title: titleOf(fault), message: explain(fault), color: 'danger', autoClose: false });
}

function show(message: {
  readonly title: string | null;
  readonly message: ReactNode;
  readonly color: string;
  readonly autoClose: number | false;
}): void {
  notifications.hide(idOf(shown));
  shown += 1;
  notifications.show({ id: idOf(shown), withBorder: true, closeButtonProps: { 'aria-label': 'Close the message' }, ...message });
}
