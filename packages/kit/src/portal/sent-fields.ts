import { isKitError } from '../errors/kit-error.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import type { Called } from './call.ts';
import { propertiesOf } from './schema-words.ts';

type Item = Readonly<Record<string, unknown>>;

/** What was left empty is not sent, unless the operation takes null. */
export function given(fields: Item, { body }: CompiledRoute): Item {
  const schemas = propertiesOf(body?.json);
  const takesNull = (name: string): boolean => [schemas[name]?.type].flat().includes('null');
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => value !== undefined && (value !== null || takesNull(name)) && !(value === '' && takesNull(name)),
    ),
  );
}

/** Faults of a body are those of the dialog's fields. */
export async function inFields(work: () => Promise<Called>): Promise<Called> {
  try {
    return await work();
  } catch (error) {
    if (!isKitError(error) || error.errors === undefined) throw error;
    const errors = error.errors.map(({ location: [first, ...rest], ...fault }) => ({
      ...fault,
      location: first === 'body' ? ['body', 'fields', ...rest] : [first ?? 'body', ...rest],
    }));
    throw Object.assign(error, { errors });
  }
}
