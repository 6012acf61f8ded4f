declare const provides: unique symbol;

/**
 * A name for something a handler or another service needs. It carries the type and nothing else, so a module that
 * asks for a mailer does not import the one that builds it.
 */
export interface Service<out T> {
  readonly name: string;
  /** Only the type lives here; the property never exists at run time. */
  readonly [provides]?: T;
}

/**
 * Declares a service by name and type: `const mailer = service<Mailer>('mailer')`. Register it with `singleton()`, `scoped()`, `transient()` or `value()`.
 *
 * @example
 * ```ts
 * const mailer = service<Mailer>('mailer');
 * createApp({ services: [singleton(mailer, {}, () => new SmtpMailer())], mount });
 *
 * class MailController extends Controller {
 *   send = route.post('/send', { permission: isStaff }, async ({ services }) => (await services.get(mailer)).send());
 * }
 * ```
 */
export function service<T>(name: string): Service<T> {
  return Object.freeze({ name });
}

export type ServiceType<S> = S extends Service<infer T> ? T : never;
