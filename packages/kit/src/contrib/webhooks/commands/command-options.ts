// Reading the options of the webhook commands; what is wrong ends the program with a sentence.
import type { CommandContext } from '../../../app/command.ts';
import type { App } from '../../../app/module.ts';
import type { Database } from '../../../db/db.ts';
import { noSuchDatabase } from '../../../db/named-database.ts';

type Context = CommandContext<App>;

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
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    context.fail(`${option} is ${JSON.stringify(text)}; use an id such as the API shows.`);
  return text.toLowerCase();
}

export function time(context: Context, option: string, text: string): Date {
  const date = new Date(text);
  const day = /^(\d{4}-\d{2}-\d{2})(T.+(Z|[+-]\d{2}:\d{2}))?$/.exec(text)?.[1] ?? '';
  // `Date` takes the 31st of February for the 3rd of March.
  const isDay = day >= '0001' && new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(-2));
  if (!isDay || Number.isNaN(date.getTime()))
    context.fail(
      `${option} is ${JSON.stringify(text)}; use a date (2026-03-01) or an ISO 8601 time with its offset (2026-03-01T12:00:00Z).`,
    );
  return date;
}
