import type { CommandContext } from '../../../app/declare/command.ts';
import type { App } from '../../../app/declare/module.ts';
import type { Database } from '../../../db/engine/db.ts';
import { noSuchDatabase } from '../../../db/open/named-database.ts';

type Context = CommandContext<App>;

/** An alias that is not known ends the program with a sentence. */
export async function databaseNamed(context: Context, alias: string): Promise<Database> {
  const { databases } = await context.app();
  const database = databases[alias];
  if (database === undefined) context.fail(noSuchDatabase(alias, Object.keys(databases)));
  return database;
}
