export { pages } from './module.ts';
export type { PagesOptions } from './options.ts';
