/** The last policy that was checked for an environment, remembered in this browser. */
const PREFIX = "proctor-policy:";

export function recallPolicy(environment: string): string | null {
  try {
    return localStorage.getItem(PREFIX + environment);
  } catch {
    return null; // storage may be forbidden; the address still has the policy
  }
}

export function rememberPolicy(environment: string, policy: string): void {
  try {
    localStorage.setItem(PREFIX + environment, policy);
  } catch {}
}
