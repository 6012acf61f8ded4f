import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';

/** What generic operations do, for those without a summary. No name of a column: not every caller knows all of them. */
const CRUD: Readonly<Record<string, (one: string, many: string) => string>> = {
  list: (_, many) => `Lists the ${many} that you can see, a page at a time.`,
  query: (_, many) => `Finds ${many} by a tree of conditions, a page at a time.`,
  retrieve: (one) => `Returns ${one} by its id.`,
  create: (one) => `Creates ${one}.`,
  update: (one) => `Replaces ${one}. To change some fields only, use the tool that updates it.`,
  partialUpdate: (one) => `Updates some fields of ${one}. Fields that are not sent keep their values.`,
  destroy: (one) => `Deletes ${one}.`,
  restore: (one) => `Restores ${one} that was deleted.`,
  bulkCreate: (_, many) => `Creates several ${many}.`,
  bulkUpdate: (_, many) => `Updates several ${many}.`,
  bulkDestroy: (_, many) => `Deletes several ${many}.`,
  stats: (_, many) => `Counts and sums ${many}, in groups if asked.`,
  meta: (_, many) => `Describes what you can see, send and do with ${many}.`,
  transitions: (one) => `Lists the changes of state that are possible for ${one}.`,
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
  const [one, many] = [`${article(name)} ${name}`, plural(name)];
  const own = CRUD[crud.operation]?.(one, many);
  if (own !== undefined) return own;
  if (crud.of === 'many') return `Does "${crud.operation}" for several ${many}. Each has its own result; a dry run says what would happen.`;
  return crud.of === 'one' ? `Does "${crud.operation}" for ${one}.` : `Changes the state of ${one}: ${crud.operation}.`;
}

function plural(name: string): string {
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(name) ? `${name}es` : `${name}s`;
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
