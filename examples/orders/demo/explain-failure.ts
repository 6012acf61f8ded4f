import { StartRefusal } from '@kit/config-server';
import { isKitError } from 'kit';

/** Lines for what a newcomer can put right; undefined for a defect, whose stack is what helps. */
export function explainFailure(error: unknown, dataFolder: string): string[] | undefined {
  // A settings file broken by hand is the likely reason: say where, and how to begin again.
  if (error instanceof StartRefusal)
    return [
      ...error.lines.map((line) => `the configuration server refuses to start: ${line}`),
      `Repair the file, or delete ${dataFolder} to begin again.`,
    ];
  if (!(error instanceof Error)) return undefined;
  const code = (error as { code?: unknown }).code;
  if (code === 'start_up_failed' || code === 'port_refused') return [error.message];
  // PostgreSQL's codes of class 28 refuse the login, 3D000 is a database that does not exist.
  if ((isKitError(error) && code === 'database_unavailable') || (typeof code === 'string' && /^(28...|3D000)$/.test(code)))
    return [
      `The database cannot be used: ${error.message}.`,
      'Correct DATABASE_URL, or unset it: without it the example keeps its data in a SQLite file.',
    ];
  return undefined;
}
