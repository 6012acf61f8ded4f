import { migration } from '../../../db/migrations/migration.ts';
import { createIndex } from '../../../db/migrations/operation.ts';

/** The admin site lists the uploads of a state, newest first, and counts them. */
export const uploadsByState = migration('0002_uploads_by_state', [createIndex('uploads', { columns: ['state', 'id'] })]);
