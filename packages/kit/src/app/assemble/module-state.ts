import type { Database, Db } from '../../db/engine/db.ts';
import { readOptions } from '../../options/read-options.ts';
import { filledText, required } from '../../options/value-rule.ts';

/** How a module's state is named in messages. */
export interface ModuleStateNames {
  /** Plural, the subject of a sentence: `API keys`. */
  readonly name: string;
  /** What to do: `add apiKeys() to the modules of createApp`. */
  readonly setUp: string;
}

/**
 * What a module keeps in memory while it runs (settings, caches, clocks), one value per database. Functions of the module find it from the
 * handle or transaction they are given, so they work in a handler, in a command, and under another framework without an application.
 *
 * A module declares it once, at the top of a file, and binds it in `setup`, or in its `use…()` function for programs without `createApp`:
 *
 *     const keyrings = moduleState<Keyring>({ name: 'API keys', setUp: 'add apiKeys() to the modules of createApp' });
 */
export interface ModuleState<S> {
  /** Throws when the database already has one. It ends with `release`, or when the database is closed. */
  bind(database: Database, state: S): void;
  /** Removes the state: call it in `stop`. Repeatable. */
  release(database: Database): void;
  /** The state of the database that a handle or transaction belongs to. Throws an error that says how to set it up. */
  of(db: Db): S;
  find(db: Db): S | undefined;
  /** By alias, for work that carries only text. An alias that two open databases of this process share is refused. */
  named(using: string): S;
}

/** State of a module per app, found by the database: for modules of your own. */
export function moduleState<S>(names: ModuleStateNames): ModuleState<S> {
  const { name, setUp } = readOptions('moduleState()', names, { name: required(filledText), setUp: required(filledText) });
  const bound = new Map<Database, S>();
  const find = (db: Db) => {
    if (typeof db !== 'object' || db === null) throw new TypeError(`${name}: the first argument is the database, or a transaction on it.`);
    return bound.get(db.database);
  };
  return {
    bind(database, state) {
      if (bound.has(database)) throw new Error(`${name} are already set up for the database "${database.using}". Do it once: ${setUp}.`);
      for (const other of bound.keys()) if (other.closed) bound.delete(other);
      bound.set(database, state);
    },
    release: (database) => void bound.delete(database),
    find,
    of(db) {
      const state = find(db);
      if (state === undefined) throw new Error(`${name} are not set up for the database "${db.using}": ${setUp}.`);
      return state;
    },
    named(using) {
      const found = [...bound].filter(([database]) => database.using === using && !database.closed).map(([, state]) => state);
      if (found.length > 1)
        throw new Error(`${name}: several open databases are called "${using}". Pass the database instead of its alias.`);
      const [state] = found;
      if (state === undefined) throw new Error(`${name} are not set up for any open database "${using}": ${setUp}.`);
      return state;
    },
  };
}
