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

const COLUMNS_KEY = 'kit-admin-hidden-columns';
let hiddenColumns = readHidden();

function readHidden(): Readonly<Record<string, readonly string[]>> {
  try {
    const stored: unknown = JSON.parse(window.localStorage.getItem(COLUMNS_KEY) ?? '{}');
    return typeof stored === 'object' && stored !== null ? (stored as Record<string, readonly string[]>) : {};
  } catch {
    return {};
  }
}

export function setHiddenColumns(resource: string, names: readonly string[]): void {
  hiddenColumns = { ...hiddenColumns, [resource]: names };
  try {
    window.localStorage.setItem(COLUMNS_KEY, JSON.stringify(hiddenColumns));
  } catch {
    // As above.
  }
  for (const listener of listeners) listener();
}

const NONE: readonly string[] = [];

/** The columns of a list that this person does not want to see. */
export function useHiddenColumns(resource: string): readonly string[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => {
      const names = hiddenColumns[resource];
      return Array.isArray(names) ? (names as readonly string[]) : NONE;
    },
  );
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
