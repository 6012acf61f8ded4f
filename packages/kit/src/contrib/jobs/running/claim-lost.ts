/** The claim on a job is no longer ours; its transaction is rolled back. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost';

  constructor() {
    super('The job is no longer ours: it was cancelled, or its lease ended and another worker may run it. Nothing was saved.');
  }
}
