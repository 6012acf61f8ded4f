import { initial } from './0001_initial.ts';

/** In order. Released ones are never edited. */
export const jobMigrations = [initial];
