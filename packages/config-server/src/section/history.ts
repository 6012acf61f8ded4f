import { changedPaths } from '../document/changed-paths.ts';
import { joinKeyPath } from '../document/key-path.ts';
import type { Table } from '../document/value.ts';
import type { Commit } from '../git/commit.ts';
import type { Reason } from './reason.ts';

/** One installed document: what changed and where it came from. It contains no values. */
export interface HistoryEntry {
  readonly generation: number;
  readonly installedAt: number;
  readonly reason: Reason;
  /** Absent when no file came from Git. */
  readonly commit: Commit | undefined;
  /** Undefined for the first document of a process: there is nothing to compare it with. */
  readonly changed: readonly string[] | undefined;
  /** How many paths changed; `changed` has at most PATHS_MAX of them. */
  readonly changedTotal: number;
}

const ENTRIES_MAX = 100;
const PATHS_MAX = 1_000;

/** The last installed documents of a section, in memory. Like generations, it starts over with the process. */
export class History {
  readonly #entries: HistoryEntry[] = [];

  /** The newest first. */
  get entries(): readonly HistoryEntry[] {
    return this.#entries;
  }

  record(entry: Omit<HistoryEntry, 'changed' | 'changedTotal'>, before: Table | undefined, after: Table): void {
    const paths = before === undefined ? undefined : changedPaths(before, after);
    this.#entries.unshift({ ...entry, changed: paths?.slice(0, PATHS_MAX).map(joinKeyPath), changedTotal: paths?.length ?? 0 });
    this.#entries.length = Math.min(this.#entries.length, ENTRIES_MAX);
  }
}
