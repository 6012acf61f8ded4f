/** The project was not created, and nothing of it is left. The message says why and what to do. */
export class ProjectRefused extends Error {
  readonly code = 'project_refused';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProjectRefused';
  }
}
