import { createContext, useEffect, useState } from 'react';
import type { AdminRecord } from '../api/shapes.ts';

/** As long as a person needs to find what changed. */
const MARKED_MS = 10_000;

const NONE: ReadonlySet<string> = new Set();

/** The names of the facts whose values changed while the page was open. */
export const ChangedFacts = createContext(NONE);

interface Shown {
  readonly place: string;
  readonly record: AdminRecord;
  readonly names: ReadonlySet<string>;
}

/** Marks for a while the facts of a record that changed. `place`: another record begins without marks. */
export function useChangedFacts(place: string, record: AdminRecord | undefined): ReadonlySet<string> {
  const [shown, setShown] = useState<Shown | null>(null);
  if (record !== undefined && shown?.record !== record)
    setShown({ place, record, names: shown?.place === place ? changedFacts(shown.record, record, shown.names) : NONE });
  const names = shown?.place === place ? shown.names : NONE;
  useEffect(() => {
    if (names.size === 0) return undefined;
    const timer = window.setTimeout(() => setShown((current) => current && { ...current, names: NONE }), MARKED_MS);
    return () => window.clearTimeout(timer);
  }, [names]);
  return names;
}

function changedFacts(before: AdminRecord, now: AdminRecord, marked: ReadonlySet<string>): ReadonlySet<string> {
  const known = factsOf(before);
  return new Set([...factsOf(now)].flatMap(([name, text]) => (marked.has(name) || known.get(name) !== text ? [name] : [])));
}

function factsOf({ sections }: AdminRecord): ReadonlyMap<string, string> {
  const facts = sections.flatMap((section) => (section.kind === 'facts' ? [section] : []));
  return new Map(facts.flatMap(({ columns, values }) => columns.map(({ name }) => [name, JSON.stringify(values[name]) ?? ''] as const)));
}
