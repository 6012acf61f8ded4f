/** What a grant gives, as it is stored: the name of a set, or actions between commas. A set's name has no comma, so the two cannot be mixed up. */
export function storedActions(given: { readonly set: string } | { readonly actions: readonly string[] }): string {
  return 'set' in given ? given.set : `,${[...new Set(given.actions)].sort().join()},`;
}

export function isStoredList(stored: string): boolean {
  return stored.startsWith(',');
}

export function listedActions(stored: string): string[] {
  return stored.split(',').filter((name) => name !== '');
}

/** As clients see it. */
export function shownActions(stored: string): { readonly set: string | null; readonly actions: readonly string[] | null } {
  return isStoredList(stored) ? { set: null, actions: listedActions(stored) } : { set: stored, actions: null };
}
