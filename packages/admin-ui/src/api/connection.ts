import { useSyncExternalStore } from 'react';

// Whether the server answered last time; set by every request, shown by the banner.
let down = false;
const listeners = new Set<() => void>();

export function markConnection(reached: boolean): void {
  if (down === !reached) return;
  down = !reached;
  for (const listener of listeners) listener();
}

export function useConnectionDown(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => down,
  );
}
