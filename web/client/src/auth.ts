import type { AuthProvider, OAuthClientProvider } from '@modelcontextprotocol/client';

export function isOAuthProvider(provider: AuthProvider | OAuthClientProvider): provider is OAuthClientProvider {
  return 'redirectToAuthorization' in provider;
}

/** Whether there is something to show the server without asking the user. */
export async function hasToken(provider: AuthProvider | OAuthClientProvider): Promise<boolean> {
  return isOAuthProvider(provider) ? (await provider.tokens()) !== undefined : (await provider.token()) !== undefined;
}

/**
 * The same provider, which leaves the page where it is unless the user asked to connect: a page that comes back from a
 * reload must not find itself at a login form.
 */
export function withoutSurprise(
  provider: AuthProvider | OAuthClientProvider | undefined,
  mayRedirect: () => boolean,
): AuthProvider | OAuthClientProvider | undefined {
  if (!provider || !isOAuthProvider(provider)) return provider;
  return new Proxy(provider, {
    get(target, property) {
      if (property === 'redirectToAuthorization')
        return (url: URL) => (mayRedirect() ? target.redirectToAuthorization(url) : undefined);
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}
