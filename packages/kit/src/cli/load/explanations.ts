import { checkDescriptions } from '../../app/check/checks.ts';
import { errorCatalogs, type ErrorDefinition } from '../../errors/catalog.ts';
import { fieldCodes } from '../../errors/field-codes.ts';
import { renderError } from '../../errors/render.ts';
import { diffRules, type ChangeLevel } from '../../openapi/diff/rules.ts';
import { deprecationNotices } from '../../options/deprecation-codes.ts';

/** What `kit explain` knows about a code. */
export interface Explanation {
  readonly code: string;
  readonly kind: 'error' | 'fault of a field' | 'check, stops the start' | 'check, warns' | `openapi diff, ${ChangeLevel}` | 'deprecation';
  readonly title: string;
  readonly meaning: string;
  readonly remedy?: string | undefined;
  /** Of an error: what a client receives. */
  readonly example?: { readonly status: number; readonly body: Readonly<Record<string, unknown>> };
}

/** The toolkit's catalogs register themselves when their file is loaded. Those of an app are known once the app is. */
export async function loadToolkitErrors(): Promise<void> {
  await Promise.all([
    import('../../contrib/accounts/errors.ts'),
    import('../../contrib/apikeys/errors.ts'),
    import('../../contrib/grants/errors.ts'),
    import('../../contrib/jobs/errors.ts'),
    import('../../contrib/personal/errors.ts'),
    import('../../contrib/requests/errors.ts'),
    import('../../contrib/tenants/errors.ts'),
    import('../../contrib/uploads/errors.ts'),
    import('../../contrib/webhooks/errors.ts'),
    import('../../crud/declare/errors.ts'),
    import('../../db/errors.ts'),
    import('../../errors/core-errors.ts'),
    import('../../http/errors.ts'),
    import('../../portal/errors.ts'),
    import('../../screens/errors.ts'),
  ]);
}

/** Every code that is known so far. A code of a field may be an error's code as well: then both are listed. */
export function explanations(): readonly Explanation[] {
  return [
    ...errorCatalogs().flatMap(({ errors }) => Object.values(errors).map(explainError)),
    ...Object.entries(fieldCodes).map(([code, meaning]) => ({
      code,
      kind: 'fault of a field' as const,
      title: sentenceCase(code),
      meaning,
      remedy: 'It is in `errors` of a response: `location` names the field, `message` says what the value must be.',
    })),
    ...Object.entries(checkDescriptions).map(([code, { title, explanation, remedy }]) => ({
      code,
      kind: code.startsWith('W') ? ('check, warns' as const) : ('check, stops the start' as const),
      title,
      meaning: explanation,
      remedy,
    })),
    ...Object.entries(diffRules).map(([code, { level, title, reason }]) => ({
      code,
      kind: `openapi diff, ${level}` as const,
      title,
      meaning: reason,
    })),
    ...Object.entries(deprecationNotices).map(([code, { title, since, removal, remedy }]) => ({
      code,
      kind: 'deprecation' as const,
      title,
      meaning: `Deprecated since ${since}; goes away in ${removal}.`,
      remedy,
    })),
  ];
}

function explainError(definition: ErrorDefinition): Explanation {
  const { code, title, detail, remedy, status, members } = definition;
  const extensions = Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, sampleOf(schema)]));
  const { document } = renderError(definition({ extensions }), { format: 'problem+json', requestId: '0f8e6c1d2b3a495867-1a' });
  return { code, kind: 'error', title, meaning: detail, remedy, example: { status, body: document } };
}

/** A value that a schema of a member accepts, good enough to be read. */
function sampleOf(schema: Readonly<Record<string, unknown>>): unknown {
  const { type, items, enum: values, examples } = schema as { type?: unknown; items?: object; enum?: unknown[]; examples?: unknown[] };
  const listed = examples?.[0] ?? values?.[0];
  if (listed !== undefined) return listed;
  const kind = Array.isArray(type) ? type[0] : type;
  if (kind === 'integer' || kind === 'number') return 1;
  if (kind === 'boolean') return true;
  if (kind === 'array') return [sampleOf((items ?? {}) as Record<string, unknown>)];
  return kind === 'object' ? {} : '…';
}

function sentenceCase(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Also as it is in a response (`urn:kit:error:not_found`), and in any case. */
export function codeOf(given: string): string {
  return given.trim().replace(/^urn:kit:error:/i, '');
}
