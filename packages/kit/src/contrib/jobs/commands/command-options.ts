// Reading the options of the job commands; what is wrong ends the program with a sentence.
import type { CommandContext } from '../../../app/command.ts';
import type { App } from '../../../app/module.ts';
import type { Database } from '../../../db/db.ts';
import { noSuchDatabase } from '../../../db/named-database.ts';
import { isUuid } from '../../../db/uuid.ts';

export type Context = CommandContext<App>;

export async function databaseNamed(context: Context, alias: string): Promise<Database> {
  const { databases } = await context.app();
  const database = databases[alias];
  if (database === undefined) context.fail(noSuchDatabase(alias, Object.keys(databases)));
  return database;
}

export function wholeNumber(context: Context, option: string, text: string, min: number, max = 999_999_999): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < min || Number(text) > max)
    context.fail(`${option} is ${JSON.stringify(text)}; use a whole number from ${min} to ${max}.`);
  return Number(text);
}

export function uuid(context: Context, option: string, text: string): string {
  if (!isUuid(text)) context.fail(`${option} is ${JSON.stringify(text)}; use an id such as \`kit jobs list\` shows.`);
  return text.toLowerCase();
}
