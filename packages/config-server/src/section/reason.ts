/** Why a document was installed. */
export type Reason = 'initial' | 'file-changed' | 'manual' | 'recovered';
