import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';

/** What generic operations do, for those without a summary. No name of a column: not every caller knows all of them. */
const CRUD: Readonly<Record<string, (name: string) => string>> = {
  list: (name) => `Lists ${name} records that you can see, a page at a time.`,
  query: (name) => `Finds ${name} records by a tree of conditions, a page at a time.`,
  retrieve: (name) => `Returns one ${name} record by its id.`,
  create: (name) => `Creates ${article(name)} ${name} record.`,
  update: (name) => `Replaces ${article(name)} ${name} record. To change some fields only, use the tool that updates it.`,
  partialUpdate: (name) => `Updates some fields of ${article(name)} ${name} record. Fields that are not sent keep their values.`,
  destroy: (name) => `Deletes ${article(name)} ${name} record.`,
  restore: (name) => `Restores a deleted ${name} record.`,
  bulkCreate: (name) => `Creates several ${name} records.`,
  bulkUpdate: (name) => `Updates several ${name} records.`,
  bulkDestroy: (name) => `Deletes several ${name} records.`,
  stats: (name) => `Counts and sums ${name} records, in groups if asked.`,
  meta: (name) => `Describes what you can see, send and do with ${name} records.`,
  transitions: (name) => `Lists the changes of state that are possible for ${article(name)} ${name} record.`,
};

/** The sentence that tells an agent what the tool does. Made of declarations: never of stored values. */
export function describedBy(route: CompiledRoute): string {
  const { tool, summary, description } = route;
  if (typeof tool === 'object' && tool.description !== undefined) return tool.description;
  const given = [summary, description].filter((text) => text !== undefined && text.trim() !== '').map((text) => sentence(text as string));
  return given.length > 0 ? given.join(' ') : (ofCrud(route) ?? '');
}

/** What a generic operation is. `of`: an action of the application, on one record or on many. */
interface CrudMetadata {
  readonly resource: string;
  readonly operation: string;
  readonly of?: 'one' | 'many';
}

function ofCrud({ metadata }: CompiledRoute): string | undefined {
  const crud = metadata['crud'] as CrudMetadata | undefined;
  if (crud === undefined) return undefined;
  const name = crud.resource.replaceAll('_', ' ');
  const own = CRUD[crud.operation]?.(name);
  if (own !== undefined) return own;
  if (crud.of === 'many')
    return `Does "${crud.operation}" for several ${name} records. Each has its own result; a dry run says what would happen.`;
  return crud.of === 'one'
    ? `Does "${crud.operation}" for ${article(name)} ${name} record.`
    : `Changes the state of ${article(name)} ${name} record: ${crud.operation}.`;
}

/** By the letter: good enough for the words that resources are called by, `user` and its like excepted. */
function article(name: string): string {
  return /^[aeiou]/i.test(name) && !/^(?:use|uni|eu|one)/i.test(name) ? 'an' : 'a';
}

function sentence(text: string): string {
  return /[.!?]$/.test(text.trim()) ? text.trim() : `${text.trim()}.`;
}

/** Fewer words than this do not tell when to use a tool. */
const WORDS_MIN = 3;

export function isMeaningful(description: string): boolean {
  return description.split(/\s+/).filter((word) => /\p{L}/u.test(word)).length >= WORDS_MIN;
}
