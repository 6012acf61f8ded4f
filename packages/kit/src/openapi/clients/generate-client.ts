import type { CompiledRoute } from '../../http/compiled-route.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { oneOf, required, text } from '../../options/value-rule.ts';
import { clientPlan } from './client-plan.ts';
import { pythonClient } from './python-client.ts';
import { typescriptClient } from './typescript-client.ts';

export const CLIENT_LANGUAGES = { typescript: typescriptClient, python: pythonClient } as const;
export type ClientLanguage = keyof typeof CLIENT_LANGUAGES;

export interface ClientOptions {
  readonly language: ClientLanguage;
  readonly title: string;
  readonly version: string;
  /** Only the operations below this version mount, e.g. `/v1`. */
  readonly mount?: string | undefined;
}

const rules: OptionRules<ClientOptions> = {
  language: required(oneOf('typescript', 'python')),
  title: required(text),
  version: required(text),
  mount: text,
};

/** The text of a client, as `kit client` writes it. The same routes give the same text. */
export function generateClient(routes: readonly CompiledRoute[], options: ClientOptions): string {
  const { language, ...rest } = readOptions('generateClient()', options, rules);
  return CLIENT_LANGUAGES[language](clientPlan(routes, rest));
}
