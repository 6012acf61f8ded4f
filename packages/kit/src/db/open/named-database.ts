import type { Db } from '../engine/db.ts';

/** The sentence about an alias that the app does not have. */
export function noSuchDatabase(alias: string, known: readonly string[]): string {
  return `There is no database "${alias}". The app has ${known.join(', ')}.`;
}

/** The database of an alias. `place` says where the alias was given: `jobs({ databases })`. */
export function databaseNamed<D extends Db>(databases: Readonly<Record<string, D>>, alias: string, place: string): D {
  const found = databases[alias];
  if (found === undefined) throw new Error(`${place}: ${noSuchDatabase(alias, Object.keys(databases))}`);
  return found;
}
