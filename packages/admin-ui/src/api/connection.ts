import { useSyncExternalStore } from 'react';

/** `silent`: a request got no answer in time. `unreachable`: none could be sent. */
export type Connection =
  | { readonly state: 'answering' }
  | { readonly state: 'silent' | 'unreachable'; /** `performance.now()` of the last answer. */ readonly since: number };

const ANSWERING: Connection = { state: 'answering' };
let connection: Connection = ANSWERING;
let lastAnswer = performance.now();
/** Changes on their way whose answer is overdue. */
let overdue = 0;
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Called with every answer, whatever it says. */
export function markAnswer(): void {
  lastAnswer = performance.now();
  if (connection === ANSWERING) return;
  connection = ANSWERING;
  tell();
}

export function markSilence(state: 'silent' | 'unreachable'): void {
  if (connection.state === state) return;
  connection = { state, since: lastAnswer };
  tell();
}

/** Until the returned function is called, the page says that a change may have been saved. */
export function markOverdue(): () => void {
  overdue += 1;
  tell();
  return () => {
    overdue -= 1;
    tell();
  };
}

export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection);
}

export function useOverdue(): boolean {
  return useSyncExternalStore(subscribe, () => overdue > 0);
}
