import { initial } from './0001_initial.ts';
import { inbox } from './0002_inbox.ts';

/** In order. Released ones are never edited. */
export const auditMigrations = [initial, inbox];
