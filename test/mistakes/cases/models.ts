// Mistakes in models and in statements on them. `//: what is wrong | the text that the compiler must mark`.
import { createTable, find, findBy, insert, list, migration, model, type Db, remove, t, timestamps, update } from 'kit/db';
import { customers, orders } from './shop.ts';

declare const db: Db;

//: a misspelt column type | txt
export const m1 = () => model('notes', { id: t.uuidv7().pk(), title: t.txt(80) });
//: a length as text | '80'
export const m2 = () => model('notes', { id: t.uuidv7().pk(), title: t.text('80') });
//: a column that is a plain value | title
export const m3 = () => model('notes', { id: t.uuidv7().pk(), title: 'text' });
//: a misspelt modifier | nulable
export const m4 = () => model('notes', { id: t.uuidv7().pk(), title: t.text(80).nulable() });
//: an enum without a list | 'paid'
export const m5 = () => model('notes', { id: t.uuidv7().pk(), status: t.enum('open', 'paid') });
//: a default that is not in the enum | 'opne'
export const m6 = () => model('notes', { id: t.uuidv7().pk(), status: t.enum(['open', 'paid']).dbDefault('opne') });
//: a default of another type | 'yes'
export const m7 = () => model('notes', { id: t.uuidv7().pk(), pinned: t.bool().dbDefault('yes') });
//: a misspelt model option | index
export const m8 = () => model('notes', { id: t.uuidv7().pk(), title: t.text(80) }, { index: [{ columns: ['title'] }] });
//: an index as one column | columns
export const m9 = () => model('notes', { id: t.uuidv7().pk(), title: t.text(80) }, { indexes: [{ columns: 'title' }] });
//: a misspelt column of an index | at startup
export const m10 = () => model('notes', { id: t.uuidv7().pk(), title: t.text(80) }, { indexes: [{ columns: ['titel'] }] });
//: a misspelt column of a full-text index | at startup
export const m11 = () => model('notes', { id: t.uuidv7().pk(), body: t.text() }, { fullText: [{ columns: ['bdy'] }] });
//: a misspelt primary key column | at startup
export const m12 = () => model('notes', { lott: t.text(4), no: t.int() }, { primaryKey: ['lot', 'no'] });
//: a reference to a value, not to a function | customers
export const m13 = () => model('notes', { id: t.uuidv7().pk(), customer_id: t.ref(customers) });
//: a misspelt option of a reference | onDelet
export const m14 = () => model('notes', { id: t.uuidv7().pk(), customer_id: t.ref(() => customers, { onDelet: 'cascade' }) });
//: an unknown rule of a reference | onDelete
export const m15 = () => model('notes', { id: t.uuidv7().pk(), customer_id: t.ref(() => customers, { onDelete: 'delete' }) });
//: columns without a name | model
export const m16 = () => model({ id: t.uuidv7().pk() });
//: an insert without a required column | { quantity: 1, owner_id: '', org_id: '', customer_id: '' }
export const m17 = () => insert(db, orders, { quantity: 1, owner_id: '', org_id: '', customer_id: '' });
//: an insert with a misspelt column | quantty
export const m18 = () => insert(db, customers, { name: 'a', quantty: 1 });
//: an insert with a value of another type | terms
export const m19 = () => insert(db, customers, { name: 'a', terms: '30' });
//: an update of a misspelt column | nme
export const m20 = () => update(db, customers, '1', { nme: 'b' });
//: a misspelt key of find() | idd
export const m21 = () => find(db, customers, { idd: '1' });
//: a misspelt key of remove() | idd
export const m22 = () => remove(db, customers, { idd: '1' });
//: a misspelt option of find() | locked
export const m23 = () => find(db, customers, '1', { locked: true });
//: a misspelt column in a condition | nam
export const m24 = () => findBy(db, customers, { nam: 'a' });
//: a misspelt operator in a condition | greater
export const m25 = () => list(db, customers, { where: { terms: { greater: 3 } } });
//: a value of another type in a condition | terms
export const m26 = () => list(db, customers, { where: { terms: '30' } });
//: a misspelt column in an order | '-nam'
export const m27 = () => list(db, customers, { orderBy: ['-nam'] });
//: a misspelt option of list() | wher
export const m28 = () => list(db, customers, { wher: { name: 'a' } });
//: a member that the row does not have | nam
export const m29 = async () => (await find(db, customers, '1'))?.nam;
//: a row that may be missing | (await find(db, customers, '1'))
export const m30 = async () => (await find(db, customers, '1')).name;
//: a migration without its list | createTable('notes', customers.columns)
export const m31 = () => migration('0001_initial', createTable('notes', customers.columns));
//: columns that are called and not spread | timestamps
export const m32 = () => model('notes', { id: t.uuidv7().pk(), timestamps: timestamps() });
