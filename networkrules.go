package relayer

func (p *EVMPolicy) checkNetworkRules(found *problems)     {}
func (p *SolanaPolicy) checkNetworkRules(found *problems)  {}
func (p *StellarPolicy) checkNetworkRules(found *problems) {}
