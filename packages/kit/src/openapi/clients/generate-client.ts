import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { flag, oneOf, required, text } from '../../options/value-rule.ts';
import { clientPlan } from './client-plan.ts';
import { pythonClient } from './python-client.ts';
import { typescriptClient } from './typescript-client.ts';
import { withDates } from './typescript-dates.ts';
import { typescriptTanstack } from './typescript-tanstack.ts';

export const CLIENT_LANGUAGES = ['typescript', 'python'] as const;
export type ClientLanguage = (typeof CLIENT_LANGUAGES)[number];

export interface ClientOptions {
  /** The language of the client. */
  readonly language: ClientLanguage;
  /** The name of the API, for the first comment of the file. */
  readonly title: string;
  /** The version of the API, for the first comment of the file. */
  readonly version: string;
  /** Only the operations below this version mount, e.g. `/v1`. */
  readonly mount?: string | undefined;
  /** TypeScript: points in time are `Date`s, in arguments and results. Default: strings, as they are sent. */
  readonly dates?: boolean | undefined;
}

const rules: OptionRules<ClientOptions> = {
  language: required(oneOf(...CLIENT_LANGUAGES)),
  title: required(text),
  version: required(text),
  mount: text,
  dates: flag,
};

/** The text of a client, as `kit client` writes it. The same routes give the same text. */
export function generateClient(routes: readonly CompiledRoute[], options: ClientOptions): string {
  const { language, dates, ...rest } = readOptions('generateClient()', options, rules);
  const plan = clientPlan(routes, rest);
  return language === 'python' ? pythonClient(plan) : typescriptClient(plan, { dates });
}

/** The helpers for TanStack Query beside a client that is imported as `client`. */
export function generateTanstack(routes: readonly CompiledRoute[], client: string, options: Omit<ClientOptions, 'language'>): string {
  const { dates, ...rest } = readOptions('generateTanstack()', { ...options, language: 'typescript' as const }, rules);
  const plan = clientPlan(routes, rest);
  return typescriptTanstack(dates === true ? withDates(plan) : plan, typescriptClient(plan, { dates }), client);
}
