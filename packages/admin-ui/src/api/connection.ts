import { useEffect, useSyncExternalStore } from 'react';

/** `silent`: a request got no answer in time. `unreachable`: none could be sent. `offline`: the browser has no network. */
export type Connection =
  | { readonly state: 'answering' }
  | { readonly state: 'silent' | 'unreachable' | 'offline'; /** `performance.now()` of the last answer. */ readonly since: number };

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

export function markSilence(state: 'silent' | 'unreachable' | 'offline'): void {
  if (connection.state === state) return;
  // What could not be sent while the browser is offline says nothing more.
  if (connection.state === 'offline' && !navigator.onLine) return;
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

/** Tells at once that the browser lost its network, and calls `onBack` when it has one again. */
export function useNetwork(onBack: () => void): void {
  useEffect(() => {
    const onOffline = (): void => markSilence('offline');
    if (!navigator.onLine) onOffline();
    window.addEventListener('offline', onOffline);
    window.addEventListener('online', onBack);
    return () => {
      window.removeEventListener('offline', onOffline);
      window.removeEventListener('online', onBack);
    };
  }, [onBack]);
}
