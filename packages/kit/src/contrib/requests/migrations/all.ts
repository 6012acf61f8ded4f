import { initial } from './0001_initial.ts';

/** One until the first release: changed in place. From then on released ones are never edited. */
export const requestMigrations = [initial];
