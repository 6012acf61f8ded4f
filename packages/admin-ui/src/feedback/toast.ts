import { createElement, type ReactNode } from 'react';
import { explain, isSessionLost, titleOf, toFault } from '../api/fault.ts';
import { withLocalTimes } from '../values/format.ts';
import { UndoMessage } from './undo-message.tsx';

/** One message at a time: the newest replaces the one before. Each has its own id, because the timer of an id is not started again. */
let shown = 0;
const listeners = new Set<() => void>();

/** How many messages there were. */
export const saidCount = (): number => shown;

export function onSaid(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

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
    message: undo === undefined ? text : createElement(UndoMessage, { text, undo, onDone: () => void hide(shown) }),
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
  const before = shown;
  const id = (shown += 1);
  for (const listener of listeners) listener();
  void put(before, { id: idOf(id), withBorder: true, closeButtonProps: { 'aria-label': 'Close the message' }, ...message });
}

const load = () => import('./late-messages.ts');

async function hide(number: number): Promise<void> {
  (await load()).notifications.hide(idOf(number));
}

async function put(before: number, message: Parameters<Awaited<ReturnType<typeof load>>['notifications']['show']>[0]): Promise<void> {
  const loaded = await load().catch(() => null);
  if (loaded === null) return;
  const { notifications } = loaded;
  notifications.hide(idOf(before));
  notifications.show(message);
}
