import { useSyncExternalStore } from 'react';

// What one person likes, kept in this browser. A browser that refuses storage keeps it until the page is left.
const KEY = 'kit-admin-exact-times';
let exactTimes = read();
const listeners = new Set<() => void>();

function read(): boolean {
  try {
    return window.localStorage.getItem(KEY) === 'yes';
  } catch {
    return false;
  }
}

export function setExactTimes(exact: boolean): void {
  exactTimes = exact;
  try {
    window.localStorage.setItem(KEY, exact ? 'yes' : 'no');
  } catch {
    // Private windows may refuse; the choice then lasts as long as the page.
  }
  for (const listener of listeners) listener();
}

/** Whether lists show exact times instead of relative ones. */
export function useExactTimes(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => exactTimes,
  );
}
