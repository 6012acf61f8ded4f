/** Last words whose singular follows no rule. */
const IRREGULAR: Readonly<Record<string, string>> = {
  people: 'person',
  children: 'child',
  men: 'man',
  women: 'woman',
  mice: 'mouse',
  feet: 'foot',
  teeth: 'tooth',
  geese: 'goose',
  indices: 'index',
  vertices: 'vertex',
  matrices: 'matrix',
  criteria: 'criterion',
  quizzes: 'quiz',
  movies: 'movie',
  cookies: 'cookie',
  zombies: 'zombie',
  series: 'series',
  species: 'species',
  news: 'news',
  menus: 'menu',
};

/** Endings, in this order: the first that fits decides. */
const ENDINGS: readonly (readonly [pattern: RegExp, ending: string])[] = [
  [/(?<=(?:^|_)(?:\w*shel|\w*sel|wol|el|hal|cal|lea|loa|thie|scar|hoo))ves$/, 'f'],
  [/(?<=(?:^|_)(?:kni|li|wi|midwi|housewi))ves$/, 'fe'],
  [/(?<=[^aeiou])ies$/, 'y'],
  [/(?<=(?:analy|hypothe|synthe|diagno|cri|paraly))ses$/, 'sis'],
  [/(?<=(?:ss|sh|(?<!ca|a)ch|tch|x|zz))es$/, ''],
  [/(?<=(?:^|[^aeo])us)es$/, ''],
  [/(?<=(?:alia|atla|ga|len|canva))ses$/, 's'],
  [/(?<=(?:her|potat|tomat|ech|vet|carg))oes$/, 'o'],
  [/(?<=[^s])s$/, ''],
];

/**
 * `orders` → `order`, `categories` → `category`, `shelves` → `shelf`, `statuses` → `status`. `resource({ name })` says it where English does not work
 * this way.
 */
export function singular(table: string): string {
  const at = table.lastIndexOf('_') + 1;
  const known = IRREGULAR[table.slice(at).toLowerCase()];
  if (known !== undefined) return table.slice(0, at) + known;
  if (/(?:is|ss|us)$/.test(table)) return table;
  const found = ENDINGS.find(([pattern]) => pattern.test(table));
  return found === undefined ? table : table.replace(found[0], found[1]);
}

/** `order_item` → `OrderItem`. */
export function pascal(name: string): string {
  return name.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The component of the OpenAPI document that describes rows of the table: `order_items` → `OrderItem`. */
export function componentName(table: string): string {
  return pascal(singular(table));
}
