import { migration } from '../../migration.ts';
import { createIndex } from '../../operation.ts';

/** Whether somebody was erased is asked for every batch of rows that waited in memory. */
export const erasedSubjects = migration('0007_erased_subjects', [
  createIndex('kit_erasures', { columns: ['kind', 'subject_id', 'state'], name: 'kit_erasures_of_subject' }),
]);
