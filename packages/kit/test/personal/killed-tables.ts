import { model, t } from '../../src/db/index.ts';
import { subjectPlan } from '../../src/db/subjects/subject-plan.ts';

export const people = model('people', { id: t.text(20).pk().person(), name: t.text().personal() });
export const notes = model(
  'notes',
  { id: t.int().pk(), owner_id: t.text(20).person(), at: t.timestamp(), seen: t.int() },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
export const bills = model('bills', {
  id: t.int().pk(),
  owner_id: t.text(20).person({ erase: 'anonymise', erased: 'erased' }),
  address: t.text().nullable().personal(),
});
export const plan = subjectPlan('person', [people, notes, bills]);
