import { useEffect } from 'react';
import type { Entry } from './palette-entries.ts';

// What can be done with the record that is open: the page says it, the palette offers it.
let atHand: readonly Entry[] = [];

export function commandsAtHand(): readonly Entry[] {
  return atHand;
}

/** While the page is open, the palette offers these first. */
export function useCommands(commands: readonly Entry[]): void {
  useEffect(() => {
    atHand = commands;
    return () => {
      atHand = [];
    };
  });
}
