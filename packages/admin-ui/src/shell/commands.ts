import { useEffect, useSyncExternalStore } from 'react';
import type { Entry } from './palette-entries.ts';

// What can be done with the record that is open: the page says it, the palette offers it, also when it is opened before the record is there.
let atHand: readonly Entry[] = [];
const listeners = new Set<() => void>();

function offer(commands: readonly Entry[]): void {
  atHand = commands;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function useCommandsAtHand(): readonly Entry[] {
  return useSyncExternalStore(subscribe, () => atHand);
}

/** While the page is open, the palette offers these first. */
export function useCommands(commands: readonly Entry[]): void {
  useEffect(() => {
    offer(commands);
    return () => offer([]);
  });
}
